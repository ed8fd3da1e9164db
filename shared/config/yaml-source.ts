import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { ConfigError, type Finding, pathText } from "./config-error.ts";

/** A YAML file that knows on which line each of its fields stands. */
export interface YamlSource {
  /** What the file says, as plain data; `null` for an empty file. */
  readonly value: unknown;
  /** An error that names file, line and field of each finding. */
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
  if (document.errors.length > 0) {
    const told = document.errors.map(
      ({ pos, message }) => `${path}:${lines.linePos(pos[0]).line}: ${message}`,
    );
    throw new ConfigError(told.join("\n"));
  }
  return {
    value: plain(path, document),
    error(findings) {
      const told = findings.map(({ path: field, message }) => {
        const offset = offsetOf(document, field);
        const line = offset === undefined ? "" : `:${lines.linePos(offset).line}`;
        return `${path}${line}: ${field.length > 0 ? `${pathText(field)}: ` : ""}${message}`;
      });
      return new ConfigError(told.join("\n"));
    },
  };
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
