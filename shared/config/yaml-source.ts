import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from "yaml";
import { ConfigError, type Finding, pathText, UNKNOWN } from "./config-error.ts";

/** A YAML file that knows on which line each of its fields stands. */
export interface YamlSource {
  /** What the file says, as plain data; `null` for an empty file. */
  readonly value: unknown;
  /** A line for each finding, with file, line and field. */
  told(findings: readonly Finding[]): string[];
  /** An error that says all of it. */
  error(findings: readonly Finding[]): ConfigError;
}

/**
 * Reads YAML 1.2 text.
 *
 * @param path the file's name, for errors
 * @throws ConfigError that names file and line of whatever is no YAML
 */
export function readYaml(path: string, text: string): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  // What is only warned of is passed over: a tag that nobody resolves, such as `!secret`, would be taken for its text.
  const amiss = [...document.errors, ...document.warnings];
  if (amiss.length > 0) {
    const told = amiss.map(({ pos, message }) => `${path}:${lines.linePos(pos[0]).line}: ${message}`);
    throw new ConfigError(told.join("\n"));
  }
  const flaw = amissIn(document);
  if (flaw !== undefined) {
    const field = flaw.field.length > 0 ? `${pathText(flaw.field)}: ` : "";
    throw new ConfigError(`${path}:${lines.linePos(flaw.at).line}: ${field}${flaw.message}`);
  }
  const told = (findings: readonly Finding[]) =>
    findings.map(({ path: field, message }) => {
      const offset = offsetOf(document, field);
      const line = offset === undefined ? "" : `:${lines.linePos(offset).line}`;
      return `${path}${line}: ${field.length > 0 ? `${pathText(field)}: ` : ""}${message}`;
    });
  return {
    value: plain(path, document),
    told,
    error: (findings) => new ConfigError(told(findings).join("\n")),
  };
}

/**
 * What YAML allows and no data that is read on can have: an alias inside of what it stands for, which has no end, and a
 * key `__proto__`, which schemas pass over (zod 4: `z.record`), so that what stands under it would be lost in silence.
 */
function amissIn(document: Document): Flaw | undefined {
  let found: Flaw | undefined;
  visit(document, {
    Alias(_, alias, around) {
      const target = alias.resolve(document);
      if (target === undefined || !around.includes(target)) return undefined;
      const message = "expected no alias inside of what it stands for";
      found = { at: alias.range?.[0] ?? 0, field: pathTo([...around, alias]), message };
      return visit.BREAK;
    },
    Pair(_, pair, around) {
      const { key } = pair;
      if (!isScalar(key) || key.value !== "__proto__") return undefined;
      found = { at: startOf(key) ?? 0, field: pathTo([...around, pair]), message: UNKNOWN };
      return visit.BREAK;
    },
  });
  return found;
}

interface Flaw {
  /** Where in the text. */
  readonly at: number;
  readonly field: readonly PropertyKey[];
  readonly message: string;
}

/** The field that nodes lead to, each within the one before. */
function pathTo(nodes: readonly unknown[]): PropertyKey[] {
  return nodes.flatMap((node, at): PropertyKey[] => {
    if (isPair(node)) return isScalar(node.key) ? [String(node.key.value)] : [];
    return isSeq(node) ? [node.items.indexOf(nodes[at + 1])] : [];
  });
}

/** Aliases are followed only here, and not without bound. */
function plain(path: string, document: Document): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw new ConfigError(`${path}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** Where a field stands, or the nearest of those around it that the file has. */
function offsetOf(document: Document, path: readonly PropertyKey[]): number | undefined {
  let node: unknown = document.contents;
  let offset = startOf(document.contents);
  for (const key of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((of) => isScalar(of.key) && of.key.value === key);
      if (pair === undefined) break;
      offset = isScalar(pair.key) ? startOf(pair.key) : offset;
      node = pair.value;
    } else if (isSeq(node) && typeof key === "number") {
      node = node.items[key];
      offset = isNodeWithRange(node) ? startOf(node) : offset;
    } else break;
  }
  return offset;
}

function startOf(node: Node | null): number | undefined {
  return node?.range?.[0];
}

function isNodeWithRange(node: unknown): node is Node {
  return isScalar(node) || isMap(node) || isSeq(node) || isAlias(node);
}
