// Requests to the agent that the page came from. Its paths begin two directories above the files of the page, so
// that the agent may be behind a path of another server.

const base = new URL("../../", import.meta.url).href;

export class Problem extends Error {
  constructor(readonly status: number, message: string, readonly retryAfter = 0) { super(message); }
}

export const pathOf = (...parts: string[]) => parts.map(encodeURIComponent).join("/");

export async function open(path: string, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(base + path, { cache: "no-store", ...(signal ? { signal } : {}) });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Problem(0, "the agent does not answer");
  }
  noteClock(response);
  if (!response.ok) {
    const detail = await response.json().then((p) => String(p.detail), () => response.statusText);
    throw new Problem(response.status, detail, Number(response.headers.get("Retry-After")) || 0);
  }
  return response;
}

const patience = 30_000; // milliseconds for a whole answer

export async function get<T>(path: string, signal?: AbortSignal): Promise<{ value: T; token: string }> {
  const limit = AbortSignal.timeout(patience);
  try {
    const response = await open(path, signal ? AbortSignal.any([signal, limit]) : limit);
    return { value: (await response.json()) as T, token: response.headers.get("Resume-Token") ?? "" };
  } catch (e) {
    if (!limit.aborted || signal?.aborted) throw e;
    throw new Problem(0, "no answer within 30 seconds. A browser opens only six connections to an agent: close other windows with this page");
  }
}

/** By how many milliseconds the agent's clock is ahead of this machine's, when that is more than what its seconds leave open. */
export let ahead = 0;

function noteClock(response: Response): void {
  const there = Date.parse(response.headers.get("Date") ?? "");
  if (!Number.isNaN(there)) {
    const difference = there + 500 - Date.now();
    ahead = Math.abs(difference) > 2000 ? difference : 0;
  }
}
