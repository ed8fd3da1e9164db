import { StepNameError } from "./errors.ts";

/** The longest name of a step, in characters, with the branches that it is in. */
export const MAX_NAME = 200;

/** The path of a branch or a step within a branch. */
export function pathOf(branch: string, name: string): string {
  const path = branch === "" ? name : `${branch}/${name}`;
  if (typeof name !== "string" || name === "" || path.length > MAX_NAME || !path.isWellFormed())
    throw new StepNameError(
      `a step's name: expected 1 to ${MAX_NAME} characters, with its branches, got ${JSON.stringify(path)}`,
    );
  return path;
}

/** The names of one branch's steps. */
export class Names {
  readonly #branch: string;
  /** The identities of all steps of the task so far. */
  readonly #taken: Set<string>;
  readonly #open = new Set<string>();
  readonly #uses = new Map<string, number>();

  constructor(branch: string, taken: Set<string>) {
    this.#branch = branch;
    this.#taken = taken;
  }

  /**
   * Opens a step and gives its identity: its path, and `#2`, `#3` when the name is used again after the first is done.
   *
   * @throws StepNameError
   */
  enter(name: string): string {
    const path = this.path(name);
    const uses = (this.#uses.get(path) ?? 0) + 1;
    const id = numbered(path, uses);
    if (this.#open.has(path) || this.#open.has(numbered(path, uses - 1)))
      throw new StepNameError(`step ${JSON.stringify(path)}: another step of this name is still open`);
    if (this.#taken.has(id))
      throw new StepNameError(
        `step ${JSON.stringify(path)}: expected a name other than ${JSON.stringify(id)}, which another step has`,
      );
    this.#uses.set(path, uses);
    this.#taken.add(id);
    this.#open.add(id);
    return id;
  }

  /** The path of a name in this branch. */
  path(name: string): string {
    return pathOf(this.#branch, name);
  }

  leave(id: string): void {
    this.#open.delete(id);
  }
}

/** Which use of a path a step's identity stands for, from 1. */
export function useOf(id: string, path: string): number {
  return id === path ? 1 : Number(id.slice(path.length + 1));
}

function numbered(path: string, uses: number): string {
  return uses <= 1 ? path : `${path}#${uses}`;
}
