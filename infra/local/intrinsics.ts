import * as z from "zod";
import { HostError } from "./errors.ts";

/** Where everything is said to live on one machine. */
export const REGION = "us-east-1";
export const ACCOUNT = "000000000000";

/** What the intrinsic functions of a template refer to. */
export interface Scope {
  /** The value of `Ref` for a logical id or pseudo parameter; undefined if there is none. */
  ref(name: string): unknown;
  /** The value of `Fn::GetAtt`; undefined if there is none. */
  attribute(logicalId: string, attribute: string): unknown;
}

const list = z.array(z.unknown());

/**
 * Resolves the intrinsic functions in a value of a template (CloudFormation: Intrinsic function reference), as far
 * as one stack on one machine needs them.
 *
 * @param path where the value stands, for the error
 * @throws HostError `assembly_invalid` for a name that does not exist, `unsupported` for another function
 */
export function resolveIntrinsics(value: unknown, scope: Scope, path: string): unknown {
  const resolve = (inner: unknown): unknown => resolveIntrinsics(inner, scope, path);
  if (Array.isArray(value)) return value.map(resolve).filter((item) => item !== undefined);
  if (typeof value !== "object" || value === null) return value;

  const entries = Object.entries(value);
  const [first] = entries;
  if (first !== undefined && entries.length === 1 && (first[0] === "Ref" || first[0].startsWith("Fn::")))
    return call(first[0], first[1], scope, path);
  return Object.fromEntries(
    entries.map(([key, inner]) => [key, resolve(inner)]).filter(([, v]) => v !== undefined),
  );
}

function call(name: string, argument: unknown, scope: Scope, path: string): unknown {
  const resolve = (inner: unknown): unknown => resolveIntrinsics(inner, scope, path);
  const text = (inner: unknown): string => asText(resolve(inner), path);
  switch (name) {
    case "Ref":
      return ref(asText(argument, path), scope, path);
    case "Fn::GetAtt": {
      const [id, ...rest] =
        typeof argument === "string" ? argument.split(".") : items(argument, path).map(text);
      return attribute(id ?? "", rest.join("."), scope, path);
    }
    case "Fn::Join": {
      const [separator, parts] = items(argument, path);
      return items(resolve(parts), path)
        .map((part) => asText(part, path))
        .join(text(separator));
    }
    case "Fn::Sub": {
      const [pattern, variables] = typeof argument === "string" ? [argument, {}] : items(argument, path);
      return substitute(asText(pattern, path), resolve(variables), scope, path);
    }
    case "Fn::Select": {
      const [index, from] = items(argument, path);
      return items(resolve(from), path)[Number(text(index))];
    }
    case "Fn::Split": {
      const [separator, from] = items(argument, path);
      return text(from).split(text(separator));
    }
    default:
      throw new HostError("unsupported", `template: ${path}: the local host does not know ${name}`);
  }
}

function substitute(pattern: string, variables: unknown, scope: Scope, path: string): string {
  const own = z.record(z.string(), z.unknown()).parse(variables ?? {});
  return pattern.replace(/\$\{(!?)([^}]+)\}/g, (_, literal: string, name: string) => {
    if (literal) return `\${${name}}`;
    if (name in own) return asText(own[name], path);
    const [id, ...rest] = name.split(".");
    return asText(
      rest.length > 0 ? attribute(id ?? "", rest.join("."), scope, path) : ref(name, scope, path),
      path,
    );
  });
}

function ref(name: string, scope: Scope, path: string): unknown {
  if (name === "AWS::NoValue") return undefined;
  const value = scope.ref(name);
  if (value === undefined)
    throw new HostError("assembly_invalid", `template: ${path}: Ref ${name} refers to nothing`);
  return value;
}

function attribute(id: string, name: string, scope: Scope, path: string): unknown {
  const value = scope.attribute(id, name);
  if (value === undefined)
    throw new HostError("assembly_invalid", `template: ${path}: Fn::GetAtt ${id}.${name} refers to nothing`);
  return value;
}

function items(value: unknown, path: string): unknown[] {
  const parsed = list.safeParse(value);
  if (!parsed.success)
    throw new HostError("assembly_invalid", `template: ${path}: expected a list, got ${typeof value}`);
  return parsed.data;
}

function asText(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  throw new HostError("assembly_invalid", `template: ${path}: expected a text, got ${typeof value}`);
}
