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
