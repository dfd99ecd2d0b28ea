import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Chart } from "../chart";
import { linkTo } from "../kinds";
import { Ago, Badge, ClusterLink, CodeLink, Filter, Said, Scroll, Title, toneOfSeverity, useSome, Waiting } from "../parts";
import { route } from "../route";
import { codes, events, known } from "../store";
import { clock } from "../time";
import type { Event as MeshEvent } from "../openapi";

export function Events() {
  const { query } = route.value;
  const text = (query.get("contains") ?? "").toLowerCase(), kind = query.get("kind") ?? "", cluster = query.get("cluster") ?? "", severity = query.get("severity") ?? "";
  const kinds = [...new Set([...events.value.values()].map((e) => e.kind))].sort();
  const passes = (e: MeshEvent) => (!kind || e.kind === kind) && (!cluster || e.cluster === cluster) && (!severity || codes.value.get(e.code)?.severity === severity)
    && (!text || `${e.name} ${e.message} ${e.code}`.toLowerCase().includes(text));
  return <>
    <Title text="Events" />
    <PerMinute of={[...events.value.values()].filter(passes)} />
    <div class="filters" role="search" aria-label="Filter events">
      <Filter name="contains" label="Contains" /><Filter name="kind" label="Kind" options={kinds} /><Filter name="severity" label="Severity" options={["info", "warning", "error"]} /><Filter name="cluster" label="Cluster" />
    </div>
    <EventTable of={passes} most={100} pausable />
  </>;
}

const minutes = 60;

function PerMinute({ of }: { of: MeshEvent[] }) {
  const last = Math.floor(clock.value / 60_000);
  const points = useMemo(() => {
    const counts = new Map<number, number>();
    for (const e of of) {
      const m = Math.floor(Date.parse(e.time) / 60_000);
      counts.set(m, (counts.get(m) ?? 0) + 1);
    }
    const at = Array.from({ length: minutes }, (_, i) => last - minutes + 1 + i);
    return { at: at.map((m) => m * 60_000), values: at.map((m) => counts.get(m) ?? 0) };
  }, [of.length, of.at(-1)?.id, last]);
  const n = points.values.reduce((a, b) => a + b, 0);
  return <Chart bars title="Events by minute" unit="events" points={points} summary={`${n} in the last hour, at most ${Math.max(...points.values)} in one minute`} />;
}

export function EventTable({ of, most, pausable = false }: { of: (e: MeshEvent) => boolean; most: number; pausable?: boolean }) {
  const held = useSignal<Map<string, MeshEvent> | null>(null); // what is shown while nothing is to move
  const all = [...(held.value ?? events.value).values()].filter(of).sort((a, b) => b.id - a.id);
  const shown = held.value;
  const since = shown ? [...events.value].filter(([id, e]) => shown.get(id)?.time !== e.time).length : 0;
  const [some, more] = useSome(all, most);
  if (!known.value) return <Waiting />;
  return <>
    {pausable && <p><button type="button" aria-pressed={held.value !== null} onClick={() => { held.value = held.value ? null : events.value; }}>{held.value ? "Go on" : "Hold"}</button>{" "}
      <span class="muted">{held.value ? `held; ${since} more since` : `${all.length} events, the newest first`}</span></p>}
    {all.length === 0 ? <p>None.</p> : <Scroll label="Events"><table>
      <caption class="unseen">Events, the newest first</caption>
      <thead><tr><th scope="col">When</th><th scope="col">Cluster</th><th scope="col">Kind</th><th scope="col">Event</th><th scope="col">About</th></tr></thead>
      <tbody>{some.map((e) => {
        const to = e.name ? linkTo(e.resource, e.name) : undefined;
        return <tr key={e.id}><td><Ago at={e.time} /></td><td><ClusterLink name={e.cluster} /></td><td><Badge tone={toneOfSeverity(codes.value.get(e.code)?.severity)}>{e.kind}</Badge></td>
          <td class="wide"><Said text={e.message} /> <CodeLink code={e.code} /></td><td>{to ? <a href={to}>{e.name}</a> : e.name}</td></tr>;
      })}</tbody>
    </table></Scroll>}
    {more}
  </>;
}
