import { parseSubject, taskIdOf } from "../../../shared/wire/index.ts";

/** What the proxy reads of a publish that changes something. */
export interface NatsWrite {
  readonly kind: string;
  readonly task: string | undefined;
  /** Whether the server answers it with one message. */
  readonly answered: boolean;
}

/** What of JetStream's API changes something (NATS docs: "JetStream wire API reference"). */
const CHANGES = /^\$JS\.API\.(STREAM|CONSUMER)\.((?:DURABLE\.)?CREATE|UPDATE|PURGE|DELETE|MSG\.DELETE)\./;
const PULL = /^\$JS\.API\.CONSUMER\.MSG\.NEXT\./;

/**
 * A publish as a write; undefined when it only reads.
 *
 * @param taskOfAck the task of an acknowledgement's subject
 */
export function natsWrite(
  subject: string,
  body: Buffer,
  taskOfAck: (subject: string) => string | undefined,
): NatsWrite | undefined {
  if (subject.startsWith("$JS.ACK."))
    return { kind: `nats ${ackKind(body)}`, task: taskOfAck(subject), answered: true };
  if (PULL.test(subject)) return { kind: `nats pull`, task: undefined, answered: false };
  const change = CHANGES.exec(subject);
  if (change !== null) {
    const [, noun = "", verb = ""] = change;
    const what = verb.toLowerCase().replace("durable.", "");
    return {
      kind: `nats ${what} ${noun.toLowerCase()}`,
      task: undefined,
      answered: true,
    };
  }
  if (subject.startsWith("$JS.")) return undefined;
  const object = /^\$O\.([^.]+)\.([CM])?/.exec(subject);
  if (object !== null)
    return { kind: `nats object ${object[2] === "M" ? "info" : "chunk"}`, task: undefined, answered: true };
  if (subject.startsWith("$KV.A2A_PEERS.")) return { kind: "nats card", task: undefined, answered: true };
  const parsed = parseSubject(subject);
  if (parsed?.kind === "heartbeat") return { kind: "nats heartbeat", task: undefined, answered: false };
  if (parsed?.kind === "event")
    return { kind: `nats publish ${subject.split(".").at(-1)}`, task: parsed.taskKey, answered: true };
  // The task is that of its executor, whoever has handed it on.
  if (parsed?.kind === "task")
    return {
      kind: "nats publish task",
      task: taskIdOf(parsed.from, parsed.to, parsed.messageId),
      answered: true,
    };
  if (parsed?.kind === "control")
    return { kind: `nats publish ${parsed.control}`, task: parsed.taskId, answered: true };
  const told = /\.news\.(task_[0-9a-f]+)$/.exec(subject)?.[1];
  return { kind: told === undefined ? `nats publish ${subject}` : "nats tell", task: told, answered: false };
}

function ackKind(body: Buffer): string {
  const text = body.toString();
  if (text.startsWith("-NAK")) return "nak";
  if (text.startsWith("+TERM")) return "term";
  return text.startsWith("+WPI") ? "in progress" : "ack";
}
