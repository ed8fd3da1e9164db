import { serverUrl } from "./deployment.ts";

/**
 * Reads servers as somebody names them in one text: URLs divided by commas, `nats://` added where there is no scheme.
 * What is wrong is said without the text, which may hold a password.
 */
export function readServerUrls(text: string): { urls: string[] } | { wrong: string } {
  // Before it is divided: a password may hold a comma.
  const whole = text.includes("@") ? [text] : text.split(",");
  const urls = whole.map((part) => {
    const url = part.trim().replace(/\/$/, "");
    return url.includes("://") ? url : `nats://${url}`;
  });
  for (const url of urls) {
    const { error } = serverUrl.safeParse(url);
    if (error !== undefined) return { wrong: error.issues.map(({ message }) => message).join("; ") };
  }
  return { urls };
}
