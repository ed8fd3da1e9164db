/**
 * Has esbuild, which inherits it, run without Go's garbage collector until it holds a gigabyte, what one synthesis takes
 * (Go: A Guide to the Go Garbage Collector, memory limit): to look for what little can be collected took a third of its
 * time. Without a limit a process that bundles several times was seen to take nine. What the environment says wins.
 */
export function letEsbuildGrow(): void {
  process.env.GOGC ??= "off";
  process.env.GOMEMLIMIT ??= "1GiB";
}
