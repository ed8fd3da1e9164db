import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import * as z from "zod";

/** A resource of a played stack: its logical id, its type and its physical id. */
export type PlayedResource = readonly [id: string, type: string, name: string];

/** A line in a log group. */
export interface PlayedEvent {
  readonly eventId: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  readonly message: string;
}

/** An answer: its JSON, or an error by its code; undefined is `ResourceNotFoundException`. */
type Answer = object | undefined;

/** What of AWS is played: there is no emulator for it. Everything may be changed while it runs. */
export interface Played {
  readonly stacks: Record<
    string,
    { outputs: Record<string, string>; status?: string; resources?: PlayedResource[] }
  >;
  /** Log groups. */
  readonly logs: Record<string, PlayedEvent[]>;
  /** Answers of GetEventSourceMapping by UUID. */
  readonly mappings: Record<string, Answer>;
  /** Answers of GetFunctionConfiguration, and reserved concurrency, by name. */
  readonly functions: Record<string, Answer>;
  readonly concurrency: Record<string, number>;
  /** Answers of DescribeRule by name. */
  readonly rules: Record<string, Answer>;
  /** Answers of DynamoDB by action, in place of the real part's. */
  readonly dynamodb: Record<string, Answer>;
  /** Alarms as DescribeAlarms tells them, by name. */
  readonly alarms: Record<string, object>;
  /** Answers of ECS by action. */
  readonly ecs: Record<string, Answer>;
  /** What IAM decides about a role (SimulatePrincipalPolicy), by the role's ARN; `allowed` of others. */
  readonly decisions: Record<string, string>;
  /** What a bucket is asked for by a word in its query, such as `lifecycle`, as XML; it has none of what is not here. */
  readonly s3: Record<string, string>;
  /** Answers of DescribeSecret by id. */
  readonly secrets: Record<string, Answer>;
  /** How far AWS's clock is ahead of ours, in milliseconds. */
  aheadMs: number;
  /** The actions that are refused, such as `DescribeRule`. */
  readonly refused: Set<string>;
}

export interface PlayedAws extends AsyncDisposable {
  readonly played: Played;
  /** The variables by which a process finds it. */
  readonly env: Record<string, string>;
}

/**
 * All of AWS at one endpoint. CloudFormation, CloudWatch and its Logs, ECS, IAM, Lambda, EventBridge, Secrets Manager
 * and what a bucket is asked about itself answer in the
 * forms of their API references; requests to DynamoDB, SQS and S3 go to a local host's parts.
 */
export async function playAws(parts: { dynamodb: string; sqs: string }): Promise<PlayedAws> {
  const played: Played = {
    stacks: {},
    logs: {},
    mappings: {},
    functions: {},
    concurrency: {},
    rules: {},
    dynamodb: {},
    alarms: {},
    ecs: {},
    decisions: {},
    s3: {},
    secrets: {},
    aheadMs: 0,
    refused: new Set(),
  };
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    const { status, type, text } = await answerTo(played, parts, request, body).catch((error: unknown) =>
      failure(400, "Unplayed", String(error)),
    );
    const date = new Date(Date.now() + played.aheadMs).toUTCString();
    response.writeHead(status, { "content-type": type, date }).end(text);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no address");
  return {
    played,
    env: {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${address.port}`,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly text: string | Buffer;
}

async function answerTo(
  played: Played,
  parts: { dynamodb: string; sqs: string },
  request: IncomingMessage,
  body: Buffer,
): Promise<Reply> {
  const target = String(request.headers["x-amz-target"] ?? "");
  const [service = "", action = ""] = target.split(".");
  if (played.refused.has(action)) return refusal();
  if (service.startsWith("DynamoDB") && action in played.dynamodb) return json(played.dynamodb[action]);
  if (service.startsWith("DynamoDB")) return pass(parts.dynamodb, request, body);
  if (service === "AmazonSQS") return pass(parts.sqs, request, body);
  if (service !== "") return json(jsonAnswer(played, service, action, body));
  const path = new URL(request.url ?? "/", "http://aws").pathname;
  if (path.startsWith("/2015-03-31/") || path.startsWith("/2019-09-30/")) return lambda(played, path);
  if (request.method === "POST" && path === "/") return query(played, new URLSearchParams(body.toString()));
  const asked = BUCKET_HAS.find(([word]) => new URLSearchParams(request.url?.split("?")[1]).has(word));
  if (asked !== undefined) return bucketHas(played, asked);
  return pass(parts.sqs, request, body); // the same server is S3
}

/** Hands a request on to a real part, with what is signed. */
async function pass(endpoint: string, request: IncomingMessage, body: Buffer): Promise<Reply> {
  const headers = Object.entries(request.headers).filter(
    ([name]) => name === "authorization" || name === "content-type" || name.startsWith("x-amz-"),
  );
  const answer = await fetch(new URL(request.url ?? "/", endpoint), {
    method: request.method ?? "POST",
    headers: Object.fromEntries(headers.map(([name, value]) => [name, String(value)])),
    ...(body.length > 0 && { body }),
  });
  const text = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, type: answer.headers.get("content-type") ?? "", text };
}

const named = z.looseObject({
  Name: z.string().default(""),
  SecretId: z.string().default(""),
  AlarmNames: z.array(z.string()).max(100).default([]),
  MaxRecords: z.int().max(100).default(50),
  NextToken: z.string().default("0"),
  logGroupName: z.string().default(""),
  filterPattern: z.string().default(""),
  startTime: z.number().default(0),
  nextToken: z.string().optional(),
});

function jsonAnswer(played: Played, service: string, action: string, body: Buffer): Answer {
  const input = named.parse(JSON.parse(body.toString()));
  if (action === "DescribeRule") return played.rules[input.Name];
  if (action === "DescribeSecret") return played.secrets[input.SecretId];
  if (service.startsWith("AmazonEC2ContainerService")) return played.ecs[action];
  if (action === "DescribeAlarms") return describeAlarms(played, input);
  if (action === "FilterLogEvents") return filterLogEvents(played, input);
  throw new Error(`nobody plays ${action}`);
}

/** At most half of what is asked for a page, as the real one may answer too. */
function describeAlarms(
  { alarms }: Played,
  { AlarmNames, MaxRecords, NextToken }: z.infer<typeof named>,
): Answer {
  const found = AlarmNames.flatMap((name) => alarms[name] ?? []);
  const from = Number(NextToken);
  const to = from + MaxRecords / 2;
  return { MetricAlarms: found.slice(from, to), ...(to < found.length && { NextToken: String(to) }) };
}

/** One event a page, and an empty page first, as the real one may answer too. */
function filterLogEvents(played: Played, input: z.infer<typeof named>): Answer {
  const group = played.logs[input.logGroupName];
  if (group === undefined) return undefined;
  const found = group.filter(
    (event) => event.timestamp >= input.startTime && matches(event, input.filterPattern),
  );
  const at = Number(input.nextToken ?? -1);
  const events = at < 0 ? [] : found.slice(at, at + 1);
  return { events, ...(at + 1 < found.length && { nextToken: String(at + 1) }) };
}

/** As much of the pattern syntax as is used: terms, any of several, and levels. */
function matches({ message }: PlayedEvent, pattern: string): boolean {
  if (pattern.startsWith("{")) {
    const levels = [...pattern.matchAll(/\$\.level = "(\w+)"/g)].map(([, level]) => `"level":"${level}"`);
    return message.startsWith("{") && levels.some((level) => message.includes(level));
  }
  return [...pattern.matchAll(/"([^"]*)"/g)].some(([, term = ""]) => message.includes(term));
}

function lambda(played: Played, path: string): Reply {
  const [, mapping] = /\/event-source-mappings\/([^/]+)$/.exec(path) ?? [];
  if (mapping !== undefined)
    return played.refused.has("GetEventSourceMapping") ? refusal() : json(played.mappings[mapping]);
  const [, name = "", what] = /\/functions\/([^/]+)\/(configuration|concurrency)$/.exec(path) ?? [];
  if (what === "configuration") return json(played.functions[name]);
  const reserved = played.concurrency[name];
  return json(reserved === undefined ? {} : { ReservedConcurrentExecutions: reserved });
}

/** CloudFormation's answers, or its errors (API reference, DescribeStacks and ListStackResources). */
/** What a bucket can be asked for, and the error when it has none (Amazon S3 API Reference, List of error codes). */
const BUCKET_HAS = [
  ["encryption", "ServerSideEncryptionConfigurationNotFoundError"],
  ["publicAccessBlock", "NoSuchPublicAccessBlockConfiguration"],
  ["lifecycle", "NoSuchLifecycleConfiguration"],
] as const;

function bucketHas({ s3, refused }: Played, [word, none]: readonly [string, string]): Reply {
  const code = refused.has(word) ? "AccessDenied" : none;
  const text = refused.has(word) ? undefined : s3[word];
  if (text !== undefined) return xml(200, text);
  return xml(
    refused.has(word) ? 403 : 404,
    `<Error><Code>${code}</Code><Message>it is refused</Message></Error>`,
  );
}

/** The services that speak AWS's query protocol. */
function query(played: Played, form: URLSearchParams): Reply {
  const action = form.get("Action") ?? "";
  if (played.refused.has(action)) return queryFailure(403, "AccessDenied", "you are not allowed to do this");
  if (action !== "SimulatePrincipalPolicy") return cloudFormation(played, form);
  const [name, resource] = [form.get("ActionNames.member.1"), form.get("ResourceArns.member.1")];
  const decision = played.decisions[form.get("PolicySourceArn") ?? ""] ?? "allowed";
  const result = `<member><EvalActionName>${name}</EvalActionName><EvalResourceName>${resource}</EvalResourceName><EvalDecision>${decision}</EvalDecision></member>`;
  return xml(
    200,
    `<SimulatePrincipalPolicyResponse><SimulatePrincipalPolicyResult><EvaluationResults>${result}</EvaluationResults></SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>`,
  );
}

function cloudFormation({ stacks }: Played, form: URLSearchParams): Reply {
  const name = form.get("StackName") ?? "";
  const stack = stacks[name];
  if (stack === undefined)
    return queryFailure(400, "ValidationError", `Stack with id ${name} does not exist`);
  if (form.get("Action") === "ListStackResources") {
    const members = (stack.resources ?? []).map(
      ([id, type, physical]) =>
        `<member><LogicalResourceId>${id}</LogicalResourceId><ResourceType>${type}</ResourceType><PhysicalResourceId>${physical}</PhysicalResourceId><ResourceStatus>CREATE_COMPLETE</ResourceStatus><LastUpdatedTimestamp>2026-08-01T12:00:00Z</LastUpdatedTimestamp></member>`,
    );
    // In two pages.
    const half = Math.ceil(members.length / 2);
    const page = form.get("NextToken") === null ? members.slice(0, half) : members.slice(half);
    const token = form.get("NextToken") === null ? "<NextToken>2</NextToken>" : "";
    return xml(
      200,
      `<ListStackResourcesResponse><ListStackResourcesResult><StackResourceSummaries>${page.join("")}</StackResourceSummaries>${token}</ListStackResourcesResult></ListStackResourcesResponse>`,
    );
  }
  const members = Object.entries(stack.outputs).map(
    ([key, value]) => `<member><OutputKey>${key}</OutputKey><OutputValue>${value}</OutputValue></member>`,
  );
  return xml(
    200,
    `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>${name}</StackName><StackStatus>${stack.status ?? "CREATE_COMPLETE"}</StackStatus><CreationTime>2026-08-01T12:00:00Z</CreationTime><Outputs>${members.join("")}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`,
  );
}

function queryFailure(status: number, code: string, message: string): Reply {
  const error = `<Type>Sender</Type><Code>${code}</Code><Message>${message}</Message>`;
  return xml(status, `<ErrorResponse><Error>${error}</Error></ErrorResponse>`);
}

function xml(status: number, text: string): Reply {
  return { status, type: "text/xml", text };
}

function json(answer: Answer): Reply {
  if (answer === undefined) return failure(404, "ResourceNotFoundException", "there is no such thing");
  return { status: 200, type: "application/x-amz-json-1.1", text: JSON.stringify(answer) };
}

function refusal(): Reply {
  return failure(400, "AccessDeniedException", "you are not allowed to do this");
}

function failure(status: number, code: string, message: string): Reply {
  return { status, type: "application/x-amz-json-1.1", text: JSON.stringify({ __type: code, message }) };
}
