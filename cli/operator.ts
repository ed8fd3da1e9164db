import { userInfo } from "node:os";

/**
 * Who runs this command, for the record: the user's name, or its number where the machine has no name for it, as in many
 * a container (Node.js: os.userInfo throws then).
 *
 * @param named the machine's name for the user; for tests
 */
export function operatorName(named: () => string = () => userInfo().username): string {
  try {
    return named();
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`;
  }
}
