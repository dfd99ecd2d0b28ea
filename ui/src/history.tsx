// The last hour, from the agent: numbers over time, and what happened when. What the agent did not see has no line.
import { effect, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get, pathOf } from "./api";
import { Chart, type Points } from "./chart";
import { Ago, ClusterLink, Icon, Said, toneOfSeverity } from "./parts";
import { link } from "./route";
import { clusters, codes, events } from "./store";
import { clock, duration, now, precise } from "./time";
import type { Event as MeshEvent, Series } from "./openapi";

const apart = 10_000; // milliseconds between two reads, of which each brings a sample more

/** The last hour of a cluster, or of all; read again after a change, and no more often than there is something new. */
function useHistory(cluster: string): { value: Series | null; at: number; again: () => void } {
  const state = useSignal<{ value: Series | null; at: number }>({ value: null, at: 0 });
  const round = useSignal(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0, last = 0;
    const read = () => {
      last = Date.now();
      get<Series>(cluster ? `v1/history/${pathOf(cluster)}` : "v1/history", abort.signal).then(({ value }) => {
        state.value = { value, at: now() };
        timer = value.points.length ? 0 : window.setTimeout(read, apart);
      }, () => { if (!abort.signal.aborted) timer = window.setTimeout(read, apart); }); // the first sample comes soon
    };
    const stop = effect(() => {
      void (cluster ? clusters.value.get(cluster) : clusters.value);
      if (!timer) timer = window.setTimeout(read, Math.max(0, last + apart - Date.now()));
    });
    return () => { stop(); abort.abort(); clearTimeout(timer); };
  }, [cluster, round.value]);
  return { ...state.value, again: () => { round.value++; } };
}

type Value = "changesPerSecond" | "lagSeconds" | "ageSeconds" | "entries";

/** A line that ends where nothing was seen. */
function pointsOf(s: Series, what: Value): Points {
  const points: Points = { at: [], values: [] };
  for (const p of s.points) {
    const t = Date.parse(p.time), before = points.at.at(-1);
    if (before !== undefined && t - before > 2500 * s.intervalSeconds) { points.at.push(before + 1000 * s.intervalSeconds); points.values.push(null); }
    points.at.push(t);
    points.values.push(p[what]);
  }
  return points;
}

const charts: [what: Value, title: string, unit: string, show: (n: number) => string][] = [
  ["changesPerSecond", "Changes", "changes a second", (n) => `${Number(n.toPrecision(2))} a second`],
  ["entries", "Entries", "entries", String],
  ["lagSeconds", "Lag", "seconds", precise],
  ["ageSeconds", "Age of the data", "seconds", (n) => duration(n)],
];

function summaryOf(points: Points, show: (n: number) => string): string {
  const seen = points.values.filter((v) => v !== null);
  if (!seen.length) return "nothing was observed";
  const least = Math.min(...seen), most = Math.max(...seen), last = points.values.at(-1);
  return `${last === null || last === undefined ? "none now" : `${show(last)} now`}, ${least === most ? "unchanged" : `${show(least)} to ${show(most)}`}`;
}

export function LastHour({ cluster = "" }: { cluster?: string }) {
  const { value: s, at, again } = useHistory(cluster);
  const all = useMemo(() => (s ? charts.map(([what, title, unit, show]) => { const points = pointsOf(s, what); return { title, unit, show, points, text: summaryOf(points, show) }; }) : []), [s]);
  const first = s?.points[0];
  return <section><h2>The last hour</h2>
    {s && !first && <p class="muted">The agent has no sample yet.</p>}
    {first && <p class="muted">{Date.parse(first.time) > now() - 3_500_000 ? <>The agent has seen {cluster ? "the cluster" : "the mesh"} since <Ago at={first.time} />.</> : "One sample each 10 seconds."} Where a line is missing, nothing was observed. Read <Ago at={at} />. <button type="button" onClick={again}>Read again</button></p>}
    <div class="charts">{all.map((c) => !c.points.values.some((v) => v !== null) ? <p key={c.title}><strong>{c.title}</strong> <span class="muted">{c.text}</span></p> : <Chart key={c.title} title={c.title} unit={c.unit} points={c.points} summary={c.text} show={c.show} from0={c.title !== "Entries"} />)}</div>
    <Timeline of={(e) => !cluster || e.cluster === cluster} />
  </section>;
}

const hour = 3_600_000, wide = 1000, lane = 16, most = 8;
const marks = { bad: 3, warn: 2, none: 1, busy: 1, good: 1 };

/** What happened when: a line for each cluster of which something was said, and the latest of it as a list. */
function Timeline({ of }: { of: (e: MeshEvent) => boolean }) {
  const minute = Math.floor(clock.value / 10_000) * 10_000;
  const all = useMemo(() => [...events.value.values()].filter((e) => of(e) && Date.parse(e.time) > minute - hour).sort((a, b) => b.id - a.id), [events.value, minute]);
  const toneFor = (e: MeshEvent) => (e.kind === "cluster-ready" || e.kind === "cluster-connected" ? "good" as const : toneOfSeverity(codes.value.get(e.code)?.severity));
  const lanes = useMemo(() => {
    const by = Map.groupBy(all, (e) => e.cluster);
    const worst = (of: MeshEvent[]) => Math.max(...of.map((e) => marks[toneFor(e)]));
    return [...by].sort(([a, x], [b, y]) => worst(y) - worst(x) || a.localeCompare(b, undefined, { numeric: true })).slice(0, most);
  }, [all, codes.value]);
  if (!all.length) return <p class="muted">No events in the last hour.</p>;
  return <figure class="timeline">
    <figcaption><strong>Events</strong> <span class="muted">{all.length} in the last hour; the list below has the latest</span></figcaption>
    <svg viewBox={`0 0 ${wide} ${lane * lanes.length + 4}`} role="img" aria-label={`Events of the last hour, ${all.length} in all, of ${lanes.length} clusters`} preserveAspectRatio="none">
      {lanes.map(([name, of], y) => <g key={name}><line x1="0" x2={wide} y1={y * lane + 10} y2={y * lane + 10} class="axis" />
        {of.slice(0, 200).map((e) => <rect key={e.id} class={toneFor(e)} x={Math.max(0, wide * (1 - (minute + 10_000 - Date.parse(e.time)) / (hour + 10_000)))} y={y * lane + 3} width="4" height="14" />)}</g>)}
    </svg>
    <p class="ends muted" aria-hidden="true"><span>an hour ago</span><span>now</span></p>
    <ol class="plain moments">{all.slice(0, most).map((e) => <li key={e.id}><Icon tone={toneFor(e)} /><Ago at={e.time} /> <b>{e.kind}</b>{e.cluster && <> <ClusterLink name={e.cluster} /></>}: <Said text={e.message} /></li>)}</ol>
    {all.length > most && <p><a href={link(["events"])}>All events</a></p>}
  </figure>;
}
