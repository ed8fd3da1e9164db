/** Writes the tables of docs/ that say what the code says: `npm run docs`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { readOptions } from "../support/options.ts";
import { DOCS, WRITTEN, writtenPage } from "./pages.ts";

readOptions(z.object({}), {});
for (const page of Object.keys(WRITTEN)) {
  writeFileSync(join(DOCS, page), writtenPage(page));
  console.log(`written: docs/${page}`);
}
