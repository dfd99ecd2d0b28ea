// A picture of the mesh: the agent, and around it the clusters that it reads. How fresh a cluster's data is, is the kind of
// its line, its state its color and mark, and how much it has the size of its place. The tiles and the table say the same
// as text, and lead to the clusters by the keyboard; here a mouse does, too. Arcs join clusters that share services: all while
// they are few, of many those of the chosen one.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { ClusterLink, Filter, Icon, stateOf, toneOf, worstOf } from "./parts";
import { sorted } from "./problems";
import { link, route } from "./route";
import { SharedWith, SharingTable, useSharing } from "./sharing";
import { status } from "./store";
import type { Cluster, Sharing } from "./openapi";

const named = 24; // so many clusters have their names beside them; of more, only those with problems
const marked = 6; // of these at most
const first = 105, apart = 26; // radii of the rings

interface Place { c: Cluster; x: number; y: number; right: boolean }

/** Rings of places around the middle, filled in the order of the names, so that a cluster stays where it is. */
function placesOf(all: Cluster[]): { places: Place[]; radius: number } {
  const places: Place[] = [], few = all.length <= named;
  let radius = first;
  for (let i = 0; i < all.length; radius += apart) {
    const n = few ? all.length : Math.min(all.length - i, Math.floor((2 * Math.PI * radius) / 20));
    for (let k = 0; k < n; k++, i++) {
      const angle = (2 * Math.PI * (k + 0.5)) / n - Math.PI / 2;
      places.push({ c: all[i]!, x: radius * Math.cos(angle), y: radius * Math.sin(angle), right: Math.cos(angle) >= 0 });
    }
  }
  return { places, radius: radius - apart };
}

const entriesOf = (c: Cluster) => Object.values(c.counts).reduce((a, b) => a + b, 0);
const line = (c: Cluster) => (c.connected && worstOf(c).state === "synced" ? "fresh" : worstOf(c).asOf ? "stale" : "away");
const cut = (name: string) => (name.length > 18 ? `${name.slice(0, 17)}…` : name);

interface Arc { key: string; a: string; b: string; n: number; d: string }

/** The arcs between two places each, bent to the middle, where the own cluster is. */
function arcsOf(places: Place[], own: string, sharing: Sharing | null, of: string): Arc[] {
  const at = new Map<string, { x: number; y: number }>(places.map((p) => [p.c.name, p]));
  at.set(own, { x: 0, y: 0 });
  const arcs: Arc[] = [];
  for (const { cluster: a, with: others } of sharing?.items ?? []) {
    const from = at.get(a);
    for (const [b, n] of from ? Object.entries(others) : []) {
      const to = at.get(b);
      if (!to || (of ? a !== of : a > b)) continue;
      const bent = (v: number) => (v * 0.55).toFixed(1);
      arcs.push({ key: `${a} ${b}`, a, b, n, d: `M${from!.x.toFixed(1)} ${from!.y.toFixed(1)}C${bent(from!.x)} ${bent(from!.y)} ${bent(to.x)} ${bent(to.y)} ${to.x.toFixed(1)} ${to.y.toFixed(1)}` });
    }
  }
  return arcs;
}

export function Picture() {
  const all = sorted.value;
  const { places, radius } = useMemo(() => placesOf([...all].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))), [all]);
  const own = status.value?.agent.cluster || "this agent", few = all.length <= named, hovered = useSignal(""), given = route.value.query.get("with") ?? "";
  const chosen = all.some((c) => c.name === given) ? given : "";
  const sharing = useSharing(few ? "" : chosen || undefined);
  const arcs = useMemo(() => arcsOf(places, own, sharing.value, few ? "" : chosen), [places, own, sharing.value, chosen]);
  if (!all.length) return null;
  const most = Math.max(1, ...all.map(entriesOf)), thickest = Math.max(1, ...arcs.map((a) => a.n)), of_ = hovered.value || chosen;
  const labeled = new Set(few ? all : all.filter((c) => toneOf(c) === "bad" || toneOf(c) === "warn").slice(0, marked));
  const partners = chosen && sharing.value ? new Set(arcs.flatMap((a) => (a.a === chosen ? a.b : a.b === chosen ? a.a : []))) : null;
  for (const c of all) if (c.name === chosen) labeled.add(c);
  const of = (kind: string) => places.filter((p) => line(p.c) === kind).length;
  const counts = ([["fresh", "fresh"], ["stale", "not confirmed now"], ["away", "never read completely"]] as const).filter(([k]) => of(k)).map(([k, text]) => `${of(k)} ${text}`).join(", ");
  const width = radius + 170, height = radius + 26;
  return <figure class="picture">
    <svg viewBox={`${-width} ${-height} ${2 * width} ${2 * height}`} role="img" aria-label={`The mesh as ${own} reads it: ${all.length} clusters, ${counts}`}>
      {arcs.map(({ key, a, b, n, d }) => <path key={key} class={`arc${of_ && of_ !== a && of_ !== b ? " other" : ""}`} d={d} stroke-width={(1 + (few ? 5 : 0.5) * Math.sqrt(n / thickest)).toFixed(1)}><title>{`${a} and ${b} share ${n} services`}</title></path>)}
      {places.map(({ c, x, y }) => <line key={c.name} class={`link ${line(c)} ${toneOf(c)}`} x1="0" y1="0" x2={x} y2={y} />)}
      <circle class="hub" r="34" /><text class="hubname" text-anchor="middle" y="4">{cut(own).slice(0, 10)}</text>
      {places.map(({ c, x, y, right }) => {
        const r = (few ? 5 : 3) + (few ? 9 : 5) * Math.sqrt(entriesOf(c) / most), tone = toneOf(c);
        return <g key={c.name} class={`place${c.name === chosen ? " chosen" : partners && !partners.has(c.name) ? " other" : ""}`} onMouseEnter={() => { hovered.value = few ? c.name : ""; }} onMouseLeave={() => { hovered.value = ""; }} onClick={() => { location.hash = link(["clusters", c.name]); }}>
          <title>{`${c.name}: ${stateOf(c)}, ${entriesOf(c)} entries`}</title>
          <circle class={tone} cx={x} cy={y} r={r} />
          {tone !== "good" && <text class="mark" text-anchor="middle" x={x} y={y + 4}>{tone === "bad" ? "✕" : tone === "warn" ? "!" : "…"}</text>}
          {labeled.has(c) && <text x={x + (right ? r + 5 : -r - 5)} y={y + 5} text-anchor={right ? "start" : "end"}>{cut(c.name)}<tspan class="amount"> {entriesOf(c)}</tspan></text>}
        </g>;
      })}
    </svg>
    <figcaption class="muted">A line is what the agent reads, the number the entries. <span><b class="key fresh" /> fresh</span> <span><b class="key stale" /> not confirmed now</span> <span><b class="key away" /> never read completely</span> <span><Icon tone="bad" />needs attention</span> <span><b class="key arcs" /> share services</span></figcaption>
    <div class="filters"><Filter name="with" label="Who shares with" none={few ? "all" : "none chosen"} options={[...all].map((c) => c.name).sort((a, b) => a.localeCompare(b, undefined, { numeric: true }))} /></div>
    {chosen ? <p><ClusterLink name={chosen} /> shares <SharedWith name={chosen} of={sharing} /></p> : few ? <p class="muted">{sharing.problem ? `Who shares with whom is not known: ${sharing.problem}` : sharing.value && pairs(arcs)}</p> : <p class="muted">Choose a cluster to see with whom it shares services.</p>}
    {few && sharing.value && <SharingTable of={sharing.value} />}
  </figure>;
}

/** The arcs as text. */
function pairs(arcs: Arc[]): string {
  if (!arcs.length) return "No two of these clusters share a service.";
  const top = [...arcs].sort((x, y) => y.n - x.n).slice(0, 3);
  return `${arcs.length} ${arcs.length === 1 ? "pair of clusters shares" : "pairs of clusters share"} services; the most: ${top.map((a) => `${a.a} and ${a.b} ${a.n}`).join(", ")}.`;
}
