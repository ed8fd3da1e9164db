import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { brotliCompressSync, createGzip, deflateSync, gzipSync } from "node:zlib";
import { allowList, type GuardOptions, guardedFetch } from "../../shared/http/index.ts";
import { until } from "../support/until.ts";
import { refused, SECRET } from "./support/refused.ts";
import { serve, serveRaw } from "./support/servers.ts";

const SOON = 50;
const MAX = 1_000;

async function asking(
  t: TestContext,
  answer: (response: ServerResponse) => void,
  options: GuardOptions = {},
) {
  const server = await serve(t, (_, response) => answer(response));
  return () => guardedFetch({ allow: allowList([server.origin]), ...options })(`${server.origin}/?${SECRET}`);
}

test("an answer has a bound, whether it says its length or not", async (t) => {
  const limits = { maxAnswerBytes: MAX };
  for (const chunked of [false, true]) {
    let size = MAX;
    const ask = await asking(
      t,
      (response) => {
        if (chunked) response.write("x".repeat(size - 1));
        response.end("x".repeat(chunked ? 1 : size));
      },
      { limits },
    );
    assert.equal((await (await ask()).text()).length, MAX);
    size = MAX + 1;
    await assert.rejects(async () => (await ask()).text(), refused("too_large", { sent: true }));
  }
});

test("an endless answer is given up at the bound", async (t) => {
  let closed = false;
  const ask = await asking(t, (response) => {
    response.on("close", () => {
      closed = true;
    });
    const more = () => {
      while (response.write(SECRET.repeat(1_000)));
    };
    response.on("drain", more);
    more();
  });
  await assert.rejects(async () => (await ask()).text(), refused("too_large"));
  await until("the connection is closed", () => closed);
});

const ENCODINGS = { gzip: gzipSync, "x-gzip": gzipSync, deflate: deflateSync, br: brotliCompressSync };

test("an answer is decompressed, and its bound counts what comes of it", async (t) => {
  for (const [encoding, compress] of Object.entries(ENCODINGS)) {
    let size = MAX;
    const ask = await asking(
      t,
      (response) => {
        const body = compress("x".repeat(size));
        assert.ok(body.byteLength < 100);
        response
          .writeHead(200, { "content-encoding": encoding, "content-length": body.byteLength })
          .end(body);
      },
      { limits: { maxAnswerBytes: MAX } },
    );
    const answer = await ask();
    assert.deepEqual(
      [answer.headers.get("content-encoding"), answer.headers.get("content-length")],
      [null, null],
    );
    assert.equal((await answer.text()).length, MAX);
    size = MAX + 1;
    await assert.rejects(async () => (await ask()).text(), refused("too_large"), encoding);
  }
});

test("a bomb is not inflated beyond the bound", async (t) => {
  let inflated = 0;
  const ask = await asking(t, (response) => {
    response.writeHead(200, { "content-encoding": "gzip" });
    const gzip = createGzip();
    gzip.pipe(response);
    const zeros = Buffer.alloc(1_048_576);
    const more = () => {
      while (!response.destroyed && inflated < 1_000) {
        inflated += 1;
        if (!gzip.write(zeros)) return;
      }
      gzip.end();
    };
    gzip.on("drain", more);
    more();
  });
  await assert.rejects(async () => (await ask()).text(), refused("too_large"));
});

test("an encoding that was not asked for, or is not what it says, is no answer", async (t) => {
  for (const encoding of ["zstd", "gzip, gzip", "compress", "__proto__"]) {
    const ask = await asking(t, (response) =>
      response.writeHead(200, { "content-encoding": encoding }).end(gzipSync(gzipSync("x"))),
    );
    await assert.rejects(ask(), refused("broken", { sent: true }), encoding);
  }
  for (const body of [SECRET, gzipSync(SECRET).subarray(0, 15)]) {
    const ask = await asking(t, (response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(body),
    );
    await assert.rejects(async () => (await ask()).text(), refused("broken", { sent: true }));
  }
});

test("an answer that breaks off is not taken for whole", async (t) => {
  const head = "HTTP/1.1 200 OK\r\n";
  for (const rest of [
    "content-length: 10\r\n\r\nhello",
    "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
  ]) {
    const server = await serveRaw(t, (socket) => socket.end(head + rest));
    const answer = await guardedFetch({ allow: allowList([server.origin]) })(server.origin);
    await assert.rejects(answer.text(), refused("broken", { sent: true }));
  }
});

test("an answer with success is of a type that was asked for", async (t) => {
  const accepts = ["application/json", "application/a2a+json"];
  for (const type of ["application/json", "Application/JSON; charset=utf-8", "application/a2a+json"]) {
    const ask = await asking(t, (response) => response.writeHead(200, { "content-type": type }).end("{}"), {
      accepts,
    });
    assert.deepEqual(await (await ask()).json(), {});
  }
  for (const type of ["text/html", "application/jsonx", "text/html, application/json", SECRET, ""]) {
    const ask = await asking(t, (response) => response.writeHead(200, { "content-type": type }).end("{}"), {
      accepts,
    });
    await assert.rejects(ask(), refused("content_type", { sent: true }), type);
  }
  const untyped = await asking(t, (response) => response.end("{}"), { accepts });
  await assert.rejects(untyped(), refused("content_type"));
  const failed = await asking(
    t,
    (response) => response.writeHead(500, { "content-type": "text/html" }).end("no"),
    {
      accepts,
    },
  );
  assert.equal((await failed()).status, 500);
});

test("an answer's head has a bound", async (t) => {
  const head = "HTTP/1.1 200 OK\r\nx: ";
  const tail = "\r\ncontent-length: 0\r\n\r\n";
  let size = 0;
  const server = await serveRaw(t, (socket) => socket.end(head.padEnd(size - tail.length, "x") + tail));
  const ask = (maxHeaderBytes: number) =>
    guardedFetch({ allow: allowList([server.origin]), limits: { maxHeaderBytes } })(server.origin);
  for (size of [2_000, 4_000]) {
    await ask(size);
    await assert.rejects(ask(size - 100), refused("too_large", { sent: true, code: "HPE_HEADER_OVERFLOW" }));
  }
});

test("whoever does not answer in time is left: before the head, between heads, within the body", async (t) => {
  const limits = { deadlineMs: SOON };
  const late = refused("timeout");
  const silent = await asking(t, () => {}, { limits });
  await assert.rejects(silent(), late);
  const halting = await asking(t, (response) => response.write(SECRET), { limits });
  await assert.rejects(async () => (await halting()).text(), late);
  const dripping = await serveRaw(t, (socket) => {
    socket.write("HTTP/1.1 200 OK\r\n");
    const drip = setInterval(() => socket.write("x: y\r\n"), 5);
    socket.on("close", () => clearInterval(drip));
  });
  await assert.rejects(guardedFetch({ allow: allowList([dripping.origin]), limits })(dripping.origin), late);
});

test("a name that is not resolved, and a connection that does not come about, end in time", async (t) => {
  const limits = { connectMs: SOON };
  const never = () => new Promise<never>(() => {});
  await assert.rejects(
    guardedFetch({ resolve: never, limits })("https://a.example/"),
    refused("timeout", { sent: false }),
  );
  // It speaks no TLS, so there is never a connection in which anything could be said.
  const mute = await serveRaw(t, () => {});
  const origin = mute.origin.replace("http", "https");
  await assert.rejects(
    guardedFetch({ allow: allowList([origin]), limits })(origin),
    refused("timeout", { sent: false }),
  );
});

test("an answer that nobody reads is closed in time", async (t) => {
  let closed = false;
  const ask = await asking(
    t,
    (response) => {
      response.on("close", () => {
        closed = true;
      });
      response.write("begun");
    },
    { limits: { deadlineMs: 10 * SOON } },
  );
  const answer = await ask();
  await until("it is closed", () => closed);
  await assert.rejects(answer.text(), refused("timeout"));
});

test("an answer that is cancelled is closed, read or not", async (t) => {
  for (const read of [false, true]) {
    let closed = false;
    const ask = await asking(t, (response) => {
      response.on("close", () => {
        closed = true;
      });
      response.write("begun");
    });
    const { body } = await ask();
    assert.ok(body !== null);
    if (read) for await (const _ of body) break;
    else await body.cancel();
    await until("it is closed", () => closed);
  }
});

const EVENTS = { "content-type": "text/event-stream" };

test("a stream of events may last beyond any deadline, as long as something comes", async (t) => {
  const gap = 4 * SOON;
  const ask = await asking(
    t,
    async (response) => {
      response.writeHead(200, EVENTS);
      for (let i = 0; i < 6; i++) {
        response.write(`data: ${i}\n\n`);
        await new Promise((resolve) => setTimeout(resolve, gap));
      }
      response.end();
    },
    // Idle for less than it lasts, and for longer than a machine under load takes between two events.
    { limits: { deadlineMs: 5 * gap, idleMs: 5 * gap } },
  );
  assert.match(await (await ask()).text(), /data: 5/);
});

test("a stream of events in which nothing comes any more is left, and so is one that nobody reads", async (t) => {
  const limits = { idleMs: SOON };
  const ask = await asking(t, (response) => response.writeHead(200, EVENTS).write("data: 1\n\n"), { limits });
  await assert.rejects(async () => (await ask()).text(), refused("timeout", { sent: true }));
  let closed = false;
  const unread = await asking(
    t,
    (response) => {
      response.on("close", () => {
        closed = true;
      });
      const pulse = setInterval(() => response.write("data: 1\n\n"), 5);
      response.on("close", () => clearInterval(pulse));
      response.writeHead(200, EVENTS);
    },
    { limits },
  );
  await unread();
  await until("it is closed", () => closed);
});

test("a stream of events has a bound of its own", async (t) => {
  let size = MAX;
  const ask = await asking(t, (response) => response.writeHead(200, EVENTS).end("x".repeat(size)), {
    limits: { maxAnswerBytes: 1, maxStreamBytes: MAX },
  });
  assert.equal((await (await ask()).text()).length, MAX);
  size = MAX + 1;
  await assert.rejects(async () => (await ask()).text(), refused("too_large"));
});
