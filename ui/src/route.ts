// The address of a view is in the fragment: it needs nothing of the server, so a link or a reload
// leads to the same view wherever the agent is.
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
/** Whether the view is not the one that the page was opened with. */
export const navigated = { value: false };

addEventListener("hashchange", () => {
  navigated.value = true;
  hash.value = location.hash;
});

export interface Route { path: string[]; query: URLSearchParams }

export const route = computed<Route>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
});

function decode(part: string): string {
  try { return decodeURIComponent(part); } catch { return part; }
}

export function link(path: string[], query: Record<string, string> = {}): string {
  const given = new URLSearchParams(Object.entries(query).filter(([, v]) => v));
  const q = given.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${q ? `?${q}` : ""}`;
}

/** Changes the query of the present view. What was typed is no step of the history. */
export function setQuery(changes: Record<string, string>): void {
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value); else query.delete(name);
  }
  history.replaceState(null, "", link(route.value.path, Object.fromEntries(query)));
  hash.value = location.hash;
}

/** Whether a prefix, or an address, is one address. */
export const alone = (prefix: string) => !prefix.includes("/") || prefix.endsWith(prefix.includes(":") ? "/128" : "/32");

/** Where the owner of an address is shown; a network has none, but what is in it is a list. */
export const linkToAddress = (prefix: string) => (alone(prefix) ? link(["addresses", prefix.split("/")[0] ?? ""]) : link(["addresses"], { prefix }));
