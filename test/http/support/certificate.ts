import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** May be missing. */
const OPENSSL = "openssl";

/**
 * A certificate that signs itself.
 *
 * @returns its PEM text, or `undefined` where there is no openssl to make it with
 */
export function certificateFor(name: string): { name: string; cert: string; key: string } | undefined {
  const dir = mkdtempSync(join(tmpdir(), "sluice-https-"));
  try {
    const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    const names = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`];
    const made = spawnSync(OPENSSL, ["req", "-x509", ...kind, "-keyout", key, "-out", cert, ...names]);
    return made.status === 0
      ? { name, cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") }
      : undefined;
  } finally {
    rmSync(dir, { recursive: true });
  }
}
