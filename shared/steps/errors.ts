/** `instanceof`, for whatever a handler throws: a proxy may throw when it is asked what it is. */
export function isA<T>(value: unknown, Kind: abstract new (...args: never[]) => T): value is T {
  try {
    return value instanceof Kind;
  } catch {
    return false;
  }
}

/** Mistakes of a handler's author. Each fails the task as `internal`, in these words. */

/** A step's name cannot be used as it was. */
export class StepNameError extends Error {
  override readonly name = "StepNameError";
}

/** A step's result, an artifact's data or an outcome is nothing that JSON can hold. */
export class NotJsonError extends Error {
  override readonly name = "NotJsonError";
}

/** A step was called after its handler had returned, or after the task was taken from it. */
export class StepClosedError extends Error {
  override readonly name = "StepClosedError";
  constructor(name: string) {
    super(
      `step ${JSON.stringify(name)}: called after the handler had ended; await every step before you return`,
    );
  }
}

/** An artifact that cannot be given out as it is. */
export class ArtifactError extends Error {
  override readonly name = "ArtifactError";
}

/** The table or the bucket could not be reached for so long that this run gives up; another will go on. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}

/** A step was called within the function of another one, whose result alone would be stored. */
export class StepNestedError extends Error {
  override readonly name = "StepNestedError";
  constructor(name: string, within: string) {
    super(
      `step ${JSON.stringify(name)}: called within step ${JSON.stringify(within)}; call it before or after that one, or in a branch`,
    );
  }
}

/** An option of a step, a duration or a time that cannot be used as it was. */
export class StepOptionError extends Error {
  override readonly name = "StepOptionError";
}

/** An attempt of a step took longer than its timeout, or than one invocation can. It is tried again like any error. */
export class StepTimeout extends Error {
  override readonly name = "TimeoutError";
}
