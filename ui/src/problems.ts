// What is wrong with the mesh as a whole, in the same words everywhere: in the summary, in the title and the icon of the
// tab, and in what is copied. Each cluster counts once.
import { computed, effect, signal } from "@preact/signals";
import { resourcesOf, stateOf, toneOf, worstOf } from "./parts";
import { clusters, events, known, live, heard, status } from "./store";
import type { Cluster, Event as MeshEvent, Impact } from "./openapi";

const severity = { bad: 0, warn: 1, busy: 2, none: 3, good: 4 };
export const severityOf = (c: Cluster) => severity[toneOf(c)];

/** All clusters, those with problems first. */
export const sorted = computed(() => [...clusters.value.values()].sort((a, b) => severityOf(a) - severityOf(b) || a.name.localeCompare(b.name, undefined, { numeric: true })));

/** Those that need somebody; what is copied for the first time does not. */
export const wrong = computed(() => sorted.value.filter((c) => toneOf(c) === "bad" || toneOf(c) === "warn"));
export const busy = computed(() => sorted.value.filter((c) => toneOf(c) === "busy"));

const kindOf = (c: Cluster) => (toneOf(c) === "good" ? "ready" : c.trouble?.kind || (c.policy && c.policy.state !== "keep" ? `${c.policy.state === "demote" ? "demoted" : "withdrawn"}` : c.state));

/** How many clusters there are of each kind, the worst first; together they are all. */
export const kinds = computed(() => {
  const counts = new Map<string, { tone: ReturnType<typeof toneOf>; n: number }>();
  for (const c of sorted.value) {
    const kind = kindOf(c), of = counts.get(kind);
    if (of) of.n++; else counts.set(kind, { tone: toneOf(c), n: 1 });
  }
  return [...counts].map(([kind, of]) => ({ kind, ...of }));
});

/** How much of the first copies is there: clusters, and the entries of those that are being read. */
export const progress = computed(() => {
  let read = 0, total = 0;
  for (const c of busy.value) {
    for (const f of resourcesOf(c).map((r) => c.freshness[r])) {
      if (!f.total) continue;
      read += f.read ?? 0;
      total += f.total;
    }
  }
  return { complete: sorted.value.length - busy.value.length, of: sorted.value.length, read, total };
});

/** The mesh in one line: what is wrong before what is under way, and well only when nothing is in doubt. */
export const verdict = computed<["bad" | "busy" | "good" | "warn" | "none", string]>(() => {
  const all = sorted.value.length, n = wrong.value.length, p = progress.value;
  if (n) return ["bad", `${n} of ${all} clusters ${n === 1 ? "needs" : "need"} attention`];
  if (busy.value.length) return ["busy", `${p.complete} of ${all} clusters complete`];
  if (!all) return known.value && status.value?.ready ? ["none", "no cluster is configured"] : ["busy", "the clusters are not known yet"];
  if (!live.value) return ["warn", `${all} ${all === 1 ? "cluster was" : "clusters were"} healthy`];
  if (status.value && !status.value.ready) return ["busy", "the agent is starting"];
  if (status.value?.reason) return ["warn", `${all} ${all === 1 ? "cluster is" : "clusters are"} ready`]; // with conflicts, refused entries or urgent notices
  return ["good", `${all} ${all === 1 ? "cluster is" : "clusters are"} healthy`];
});

const well = ["cluster-ready", "cluster-connected"];

/** Since when a cluster is as it is: the first event after it was well the last time, or the last confirmation before that. */
export function sinceOf(c: Cluster, all: Iterable<MeshEvent> = events.value.values()): string | null {
  let since: string | null = null;
  for (const e of [...all].filter((e) => e.cluster === c.name && (e.kind.startsWith("cluster-") || e.kind === "backends-withheld")).sort((a, b) => a.id - b.id)) {
    since = e.kind === "cluster-ready" || (since === null && well.includes(e.kind)) ? null : since ?? e.time;
  }
  const asOf = c.freshness.worst.state === "stale" ? worstOf(c).asOf : null; // it may be noticed later
  return since && asOf && Date.parse(asOf) < Date.parse(since) ? asOf : since;
}

/** What services lose with a cluster, as the agent says; nothing where it does not. */
export function lossOf(c: Cluster): string {
  return lossText(status.value?.impact?.each.find((x) => x.cluster === c.name));
}

/** The same of all clusters that are lost. */
export const loss = computed(() => lossText(status.value?.impact ?? undefined));

function lossText(of: Pick<Impact, "only" | "partly"> | undefined): string {
  if (!of) return "";
  const some = (l: Impact["only"], what: string) => (l.services ? `${l.services} ${l.services === 1 ? "service has" : "services have"} ${what}: ${l.names.join(", ")}${l.services > l.names.length ? ` and ${l.services - l.names.length} more` : ""}` : "");
  return [some(of.only, "backends only there"), some(of.partly, "some of their backends there")].filter(Boolean).join(". ");
}

/** What the title of the view is; the tab has more before it. */
export const title = signal("");

const colors = { bad: ["#7f1d1d", "#fca5a5"], busy: ["#1e3a8a", "#93c5fd"], warn: ["#713f12", "#fcd34d"], none: ["#374151", "#d1d5db"] };
const shape = (fill: string, line: string, mark: string) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${fill}"/><g fill="none" stroke="${line}" stroke-width="2"><path d="M9 10h14L16 24z"/></g><g fill="#fff"><circle cx="9" cy="10" r="4"/><circle cx="23" cy="10" r="4"/><circle cx="16" cy="24" r="4"/></g>${mark}</svg>`;
const cross = '<circle cx="24" cy="24" r="8" fill="#fff"/><path d="M21 21l6 6m0-6l-6 6" stroke="#b91c1c" stroke-width="3"/>';

/** Lets the tab say that something is wrong, for those who look at another one. */
export function showInTab(): void {
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]"), good = icon?.href ?? "";
  effect(() => {
    const [tone] = verdict.value, lost = heard.value > 0 && !live.value;
    const n = wrong.value.length;
    document.title = `${lost ? "Not live: " : n ? `(${n}) ✕ ` : tone === "warn" ? "▲ " : ""}${title.value}${title.value && " - "}mesh-agent`;
    const look = lost ? "none" : tone;
    const href = look === "good" ? good : `data:image/svg+xml,${encodeURIComponent(shape(colors[look][0]!, colors[look][1]!, look === "bad" ? cross : ""))}`;
    if (icon && icon.href !== href) icon.href = href;
  });
}

/** A problem of a cluster as text, for a message to somebody else. */
export function textOf(c: Cluster): string {
  const since = sinceOf(c), asOf = c.freshness.worst.state === "synced" ? null : c.freshness.worst.asOf;
  return [
    `Cluster ${c.name}: ${stateOf(c)}${since ? ` since ${since}` : ""}${asOf ? `, data as of ${asOf}` : ""}`,
    [c.message, c.code && toneOf(c) !== "good" ? `(${c.code})` : ""].filter(Boolean).join(" "),
    ...c.notices.map((n) => `Notice: ${n.message} (${n.code})`),
    lossOf(c), remedyOf(c) && `What to do: ${remedyOf(c)}`,
  ].filter(Boolean).join("\n");
}

export const remedyOf = (c: Cluster) => (toneOf(c) === "good" ? "" : c.remedy && c.remedy !== "Nothing to do." ? c.remedy : c.trouble?.remedy ?? "");
