// A picture of the mesh: the agent, and around it the clusters that it reads. How fresh a cluster's data is, is the kind of
// its line, its state its color and mark, and how much it has the size of its place. The tiles and the table say the same
// as text, and lead to the clusters by the keyboard; here a mouse does, too.
import { useMemo } from "preact/hooks";
import { Icon, stateOf, toneOf, worstOf } from "./parts";
import { sorted } from "./problems";
import { link } from "./route";
import { status } from "./store";
import type { Cluster } from "./types";

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

export function Picture() {
  const all = sorted.value;
  const { places, radius } = useMemo(() => placesOf([...all].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))), [all]);
  if (!all.length) return null;
  const most = Math.max(1, ...all.map(entriesOf)), few = all.length <= named;
  const labeled = new Set(few ? all : all.filter((c) => toneOf(c) === "bad" || toneOf(c) === "warn").slice(0, marked));
  const of = (kind: string) => places.filter((p) => line(p.c) === kind).length;
  const counts = ([["fresh", "fresh"], ["stale", "not confirmed now"], ["away", "never read completely"]] as const).filter(([k]) => of(k)).map(([k, text]) => `${of(k)} ${text}`).join(", ");
  const width = radius + 170, height = radius + 26, own = status.value?.agent.cluster || "this agent";
  return <figure class="picture">
    <svg viewBox={`${-width} ${-height} ${2 * width} ${2 * height}`} role="img" aria-label={`The mesh as ${own} reads it: ${all.length} clusters, ${counts}`}>
      {places.map(({ c, x, y }) => <line key={c.name} class={`link ${line(c)} ${toneOf(c)}`} x1="0" y1="0" x2={x} y2={y} />)}
      <circle class="hub" r="34" /><text class="hubname" text-anchor="middle" y="4">{cut(own).slice(0, 10)}</text>
      {places.map(({ c, x, y, right }) => {
        const r = (few ? 5 : 3) + (few ? 9 : 5) * Math.sqrt(entriesOf(c) / most), tone = toneOf(c);
        return <g key={c.name} class="place" onClick={() => { location.hash = link(["clusters", c.name]); }}>
          <title>{`${c.name}: ${stateOf(c)}, ${entriesOf(c)} entries`}</title>
          <circle class={tone} cx={x} cy={y} r={r} />
          {tone !== "good" && <text class="mark" text-anchor="middle" x={x} y={y + 4}>{tone === "bad" ? "✕" : tone === "warn" ? "!" : "…"}</text>}
          {labeled.has(c) && <text x={x + (right ? r + 5 : -r - 5)} y={y + 5} text-anchor={right ? "start" : "end"}>{cut(c.name)}<tspan class="amount"> {entriesOf(c)}</tspan></text>}
        </g>;
      })}
    </svg>
    <figcaption class="muted">A line is what the agent reads, the number the entries. <span><b class="key fresh" /> fresh</span> <span><b class="key stale" /> not confirmed now</span> <span><b class="key away" /> never read completely</span> <span><Icon tone="bad" />needs attention</span></figcaption>
  </figure>;
}
