import type { AnyNode, NewExpression, ObjectExpression, Pattern, Program } from "acorn";
import { parse } from "acorn";
import { ancestor } from "acorn-walk";

/** An AWS request that code makes: `new <command>(…)`. */
export interface Made {
  /** Such as `PutCommand`. */
  readonly command: string;
  /** The names of its first argument's properties, as far as they stand there. */
  readonly fields: readonly string[];
}

/** What code can make, and the names of all properties of the objects that it can build. */
export interface Reach {
  readonly made: readonly Made[];
  readonly fields: ReadonlySet<string>;
}

/** A piece of code that runs only if somebody names it; the module itself is one that always does. */
interface Unit {
  readonly made: Made[];
  readonly fields: Set<string>;
  readonly mentions: Set<string>;
}

const newUnit = (): Unit => ({ made: [], fields: new Set(), mentions: new Set() });

/**
 * What a module can do, by names: a function runs if code that can run mentions it, a method if such code calls one of
 * that name, whosever it is. So this finds too much rather than too little, with one exception: a method that is handed
 * on as a value (`{ read: store.head }`) is not seen to be called. What functions were seen to do is held against it.
 *
 * @param isRequest tells which classes' instances are requests
 */
export function reachOf(code: string, isRequest: (className: string) => boolean): Reach {
  const units = unitsOf(parse(code, { ecmaVersion: "latest", sourceType: "module" }), isRequest);
  const reached = new Set<Unit>();
  const known = new Set<string>();
  const open = [""];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (known.has(name)) continue;
    known.add(name);
    for (const unit of units.get(name) ?? []) {
      reached.add(unit);
      open.push(...unit.mentions);
    }
  }
  const all = [...reached];
  return {
    made: all.flatMap(({ made }) => made),
    fields: new Set(all.flatMap(({ fields }) => [...fields])),
  };
}

function unitsOf(program: Program, isRequest: (className: string) => boolean): Map<string, Unit[]> {
  const byNode = new Map<AnyNode, Unit>();
  const byName = new Map<string, Unit[]>([["", [newUnit()]]]);
  const [module = newUnit()] = byName.get("") ?? [];
  const taken = new Map<string, Set<string>>();
  /** The unit of the innermost named piece of code around a node. */
  const around = (ancestors: readonly AnyNode[]): Unit => {
    for (let at = ancestors.length - 1; at >= 0; at--) {
      const node = ancestors[at];
      const name = node && nameOf(node, ancestors[at - 1]);
      if (node === undefined || name === undefined) continue;
      const unit = byNode.get(node) ?? newUnit();
      if (!byNode.has(node)) {
        byNode.set(node, unit);
        byName.set(name, [...(byName.get(name) ?? []), unit]);
      }
      return unit;
    }
    return module;
  };
  const mention = (name: string, ancestors: readonly AnyNode[]) => void around(ancestors).mentions.add(name);
  ancestor(program, {
    Identifier: (node, _, ancestors) => mention(node.name, ancestors.slice(0, -1)),
    ObjectPattern: ({ properties }) => {
      for (const of of properties)
        if (of.type === "Property" && of.key.type === "Identifier") noteTaken(taken, of.key.name, of.value);
    },
    CallExpression: ({ callee }, _, ancestors) => {
      if (callee.type === "Identifier") mention(`()${callee.name}`, ancestors);
      if (callee.type === "MemberExpression" && !callee.computed) mention(keyOf(callee.property), ancestors);
    },
    ObjectExpression: (node, _, ancestors) => {
      for (const name of namesIn(node)) around(ancestors).fields.add(name);
    },
    NewExpression: (node, _, ancestors) => {
      const made = madeBy(node);
      if (made !== undefined && isRequest(made.command)) around(ancestors).made.push(made);
    },
  });
  // Who calls what was taken out of an object calls its method.
  for (const [local, keys] of taken) byName.set(`()${local}`, [{ ...newUnit(), mentions: keys }]);
  return byName;
}

/** `const { key: local } = …`: the local name, as the bundler has made it, stands for the methods of that name. */
function noteTaken(taken: Map<string, Set<string>>, key: string, value: Pattern): void {
  const local = value.type === "AssignmentPattern" ? value.left : value;
  if (local.type !== "Identifier") return;
  const keys = taken.get(local.name) ?? new Set();
  taken.set(local.name, keys.add(`.${key}`));
}

/** What code must mention for a node to run; undefined for what runs with the code around it. */
function nameOf(node: AnyNode, parent: AnyNode | undefined): string | undefined {
  switch (node.type) {
    case "FunctionDeclaration":
      return node.id?.name;
    case "ClassDeclaration":
      return node.id?.name;
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      return parent && nameOfFunction(parent);
    default:
      return undefined;
  }
}

function nameOfFunction(parent: AnyNode): string | undefined {
  if (parent.type === "VariableDeclarator" && parent.id.type === "Identifier") return parent.id.name;
  if (
    parent.type !== "Property" &&
    parent.type !== "MethodDefinition" &&
    parent.type !== "PropertyDefinition"
  )
    return undefined;
  // A constructor runs where its class is mentioned.
  if (parent.computed || (parent.type === "MethodDefinition" && parent.kind === "constructor"))
    return undefined;
  return keyOf(parent.key);
}

/** A method's name, apart from those of functions; a private one is another's. */
function keyOf(key: AnyNode): string {
  if (key.type === "Identifier") return `.${key.name}`;
  return key.type === "PrivateIdentifier" ? `.#${key.name}` : "";
}

function namesIn({ properties }: ObjectExpression): string[] {
  return properties.flatMap((of) =>
    of.type === "Property" && of.key.type === "Identifier" && !of.computed ? [of.key.name] : [],
  );
}

function madeBy({ callee, arguments: [first] }: NewExpression): Made | undefined {
  if (callee.type !== "Identifier") return undefined;
  return { command: callee.name, fields: first?.type === "ObjectExpression" ? namesIn(first) : [] };
}
