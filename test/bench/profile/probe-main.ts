/** Loaded into a function's process (`--import`): the first SIGUSR2 starts a CPU profile, the second writes it. */
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join } from "node:path";

const session = new Session();
session.connect();
let running = false;

process.on("SIGUSR2", async () => {
  running = !running;
  if (running) {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    return;
  }
  const { profile } = await session.post("Profiler.stop");
  writeFileSync(join(process.env.PROFILE_DIR ?? ".", `${process.pid}.cpuprofile`), JSON.stringify(profile));
});
