import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Allowed, check, filesBelow, MAX_SOURCES, read, source } from "../../../agents/parts/sources.ts";
import { FatalError } from "../../../shared/agents/index.ts";

const MAX_BYTES = 64;
const { signal } = new AbortController();

test("a source is a text, a file or a page, and nothing else", () => {
  for (const right of [
    { text: "t" },
    { text: "t", title: "T" },
    { file: "a.md" },
    { url: "https://x.example/" },
  ])
    assert.equal(source.safeParse(right).success, true, JSON.stringify(right));
  for (const wrong of [
    {},
    { text: "" },
    { url: "file:///etc/passwd" },
    { url: "x" },
    { file: "a", url: "https://x" },
  ])
    assert.equal(source.safeParse(wrong).success, false, JSON.stringify(wrong));
});

test("a text at the bound is whole, one byte more is cut", async () => {
  const allowed = { hosts: [], maxBytes: MAX_BYTES };
  const whole = "x".repeat(MAX_BYTES);
  assert.deepEqual(await read({ text: whole }, allowed, signal), {
    text: whole,
    bytes: MAX_BYTES,
    cut: false,
  });
  assert.deepEqual(await read({ text: `${whole}x` }, allowed, signal), {
    text: whole,
    bytes: MAX_BYTES,
    cut: true,
  });
});

describe("files", () => {
  const outside = mkdtempSync(join(tmpdir(), "sluice-sources-"));
  const folder = join(outside, "texts");
  const allowed: Allowed = { folder, hosts: [], maxBytes: MAX_BYTES };
  before(() => {
    mkdirSync(join(folder, "deep"), { recursive: true });
    writeFileSync(join(folder, "b.md"), "b");
    writeFileSync(join(folder, "deep", "a.txt"), "a".repeat(MAX_BYTES + 1));
    writeFileSync(join(folder, "picture.png"), "p");
    writeFileSync(join(outside, "secret.txt"), "secret");
    mkdirSync(`${folder}-too`);
    writeFileSync(join(`${folder}-too`, "c.md"), "c");
    symlinkSync(join(outside, "secret.txt"), join(folder, "link.txt"));
    symlinkSync("b.md", join(folder, "inner.md"));
  });
  after(() => rmSync(outside, { recursive: true }));

  test("are read below the folder, and cut at the bound", async () => {
    assert.deepEqual(await read({ file: "b.md" }, allowed, signal), { text: "b", bytes: 1, cut: false });
    assert.equal((await read({ file: "inner.md" }, allowed, signal)).text, "b");
    const { bytes, cut } = await read({ file: "deep/a.txt" }, allowed, signal);
    assert.deepEqual([bytes, cut], [MAX_BYTES, true]);
  });

  test("outside of it are not there, whichever way leads out", async () => {
    const secret = join(outside, "secret.txt");
    for (const file of [
      "../secret.txt",
      secret,
      "link.txt",
      "deep",
      ".",
      "none.md",
      "../texts-too/c.md",
      "a\0b",
    ])
      await assert.rejects(read({ file }, allowed, signal), new FatalError(`there is no file ${file}`));
    assert.throws(() => check({ file: "b.md" }, { hosts: [], maxBytes: 1 }), /see `folder`/);
  });

  test("are listed by name, texts only, up to the bound", async () => {
    assert.deepEqual(await filesBelow(folder), ["b.md", "deep/a.txt"]);
    await assert.rejects(
      filesBelow(join(outside, "none")),
      /^FatalError: the folder of texts cannot be listed/,
    );
    const many = join(outside, "many");
    mkdirSync(many);
    for (let n = 0; n <= MAX_SOURCES; n++) writeFileSync(join(many, `${100 + n}.md`), "");
    const found = await filesBelow(many);
    assert.deepEqual(
      [found.length, found[0], found.at(-1)],
      [MAX_SOURCES, "100.md", `${99 + MAX_SOURCES}.md`],
    );
  });
});

describe("pages", () => {
  const pages: Readonly<Record<string, RequestListener>> = {
    "/text": (_, answer) => answer.end("plain"),
    "/html": (_, answer) =>
      answer.setHeader("content-type", "text/html; charset=utf-8").end("<p>a</p><p>b</p>"),
    "/latin": (_, answer) =>
      answer.setHeader("content-type", "text/plain; charset=iso-8859-1").end(Buffer.of(0xfc)),
    "/endless": (_, answer) => {
      const more = () => {
        while (answer.write("x".repeat(1_000)));
      };
      answer.on("drain", more).setHeader("content-type", "text/plain");
      more();
    },
    "/never": () => {},
    "/picture": (_, answer) => answer.setHeader("content-type", "image/png").end("p"),
    "/gone": (_, answer) => answer.writeHead(410).end(),
    "/busy": (_, answer) => answer.writeHead(503).end(),
    "/often": (_, answer) => answer.writeHead(429).end(),
    "/moved": (_, answer) => answer.writeHead(301, { location: "/text" }).end(),
    "/round": (_, answer) => answer.writeHead(302, { location: "/round" }).end(),
    "/away": (_, answer) => answer.writeHead(302, { location: "http://elsewhere.example/" }).end(),
  };
  const server = createServer((request, answer) => pages[request.url ?? ""]?.(request, answer));
  let host = "";
  let allowed: Allowed = { hosts: [], maxBytes: MAX_BYTES };
  before(async () => {
    await once(server.listen(0, "127.0.0.1"), "listening");
    const address = server.address();
    assert.ok(typeof address === "object" && address !== null);
    host = `127.0.0.1:${address.port}`;
    allowed = { hosts: [host], maxBytes: MAX_BYTES };
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const page = (path: string) => read({ url: `http://${host}${path}` }, allowed, signal);

  test("are read as text", async () => {
    assert.equal((await page("/text")).text, "plain");
    assert.equal((await page("/html")).text, "a\n\nb");
    assert.equal((await page("/latin")).text, "ü");
    assert.equal((await page("/moved")).text, "plain");
  });

  test("without an end are cut at the bound", async () => {
    const { bytes, cut } = await page("/endless");
    assert.deepEqual([bytes, cut], [MAX_BYTES, true]);
  });

  test("that never answer are given up when the signal fires", async () => {
    const late = AbortSignal.timeout(50);
    await assert.rejects(read({ url: `http://${host}/never` }, allowed, late), /timeout/);
  });

  test("that will never do fail for good, others may be tried again", async () => {
    await assert.rejects(page("/picture"), new FatalError("expected a text, got image/png"));
    await assert.rejects(page("/gone"), new FatalError(`${host} answered 410`));
    for (const [path, status] of [
      ["/busy", 503],
      ["/often", 429],
    ])
      await assert.rejects(page(String(path)), (error: Error) => {
        assert.equal(error instanceof FatalError, false);
        return error.message === `${host} answered ${status}`;
      });
  });

  test("of other hosts are not asked for, not even by a redirect", async () => {
    await assert.rejects(page("/away"), /pages of elsewhere\.example are not allowed; allowed: 127/);
    await assert.rejects(page("/round"), /more than 5 redirects/);
    for (const url of [`http://127.0.0.1/`, `http://127.0.0.1.example/`, `http://localhost:1/`])
      assert.throws(() => check({ url }, allowed), /are not allowed/);
    assert.throws(() => check({ url: `http://a:b@${host}/` }, allowed), /no user name/);
    assert.throws(() => check({ url: "https://x.example/" }, { hosts: [], maxBytes: 1 }), /see `hosts`/);
  });
});
