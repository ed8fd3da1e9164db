/**
 * How a container asks itself whether it is well (functions/bridge/health.ts); Node.js's image has no other program that
 * could ask.
 *
 * @param port where it answers, on its own machine
 */
export function healthCommand(port: number): [program: string, ...args: string[]] {
  const ask = `fetch("http://127.0.0.1:${port}").then(({ok})=>process.exit(ok?0:1),()=>process.exit(1))`;
  return ["node", "-e", ask];
}
