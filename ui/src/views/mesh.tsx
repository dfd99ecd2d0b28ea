import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Ago, Badge, ClusterLink, CodeLink, Failed, Filter, Icon, Known, Scroll, stateOf, Title, toneOf, useGradually, Waiting, worstOf } from "../parts";
import { link, route, setQuery } from "../route";
import { clusters, known, status, statusProblem, readStatus } from "../store";
import { clock, duration, precise } from "../time";
import type { Cluster, Resource } from "../types";

/** What happens to a cluster's backends if nothing changes. */
export function Next({ of: c }: { of: Cluster }) {
  const p = c.policy;
  if (p?.nextAt) {
    const s = (Date.parse(p.nextAt) - clock.value) / 1000;
    const what = p.next === "keep" ? "restored" : p.next === "demote" && p.state === "withdraw" ? "demoted, no longer withdrawn" : p.next === "demote" ? "demoted" : "withdrawn";
    return <>{what} {s > 0 ? `in ${duration(s)}` : "now"}</>;
  }
  if (p && p.state !== "keep") return <>{p.state === "demote" ? "demoted" : "withdrawn"} since <Ago at={p.since} /></>;
  if (c.state === "syncing") return <>ready after the copy</>;
  if (!c.connected) return <>reconnect</>;
  return <span class="muted">none</span>;
}

/** The longest lag of a cluster's resources, as its status said last. */
const lagOf = (name: string): number | undefined => lags.value.get(name);

const lags = computed(() => {
  const all = new Map<string, number>();
  for (const c of status.value?.clusters ?? []) {
    for (const f of Object.values(c.freshness)) if (f?.lag) all.set(c.name, Math.max(all.get(c.name) ?? 0, f.lag.p99Seconds));
  }
  return all;
});

const severity = { bad: 0, warn: 1, busy: 2, none: 3, good: 4 };
const byTrouble = (a: Cluster, b: Cluster) => severity[toneOf(a)] - severity[toneOf(b)] || a.name.localeCompare(b.name, undefined, { numeric: true });

const columns: { id: string; title: string; right?: boolean; of: (c: Cluster) => number | string }[] = [
  { id: "name", title: "Cluster", of: (c) => c.name },
  { id: "state", title: "State", of: (c) => severity[toneOf(c)] },
  { id: "known", title: "Data", of: (c) => { const f = worstOf(c); return f.state === "synced" ? Number.MAX_VALUE : f.asOf ? Date.parse(f.asOf) : 0; } },
  ...(["nodes", "services", "identities", "ips"] as Resource[]).map((r) => ({ id: r, title: r === "ips" ? "Addresses" : r[0]!.toUpperCase() + r.slice(1), right: true, of: (c: Cluster) => c.counts[r] })),
  { id: "lag", title: "Lag", right: true, of: (c) => lagOf(c.name) ?? -1 },
  { id: "next", title: "Next step", of: (c) => c.policy?.nextAt ?? "" },
];

export function Mesh() {
  const { query } = route.value;
  const text = (query.get("contains") ?? "").toLowerCase(), state = query.get("state") ?? "", sort = query.get("sort") ?? "";
  const all = sorted.value;
  if (!known.value && !all.length) return <><Title text="Mesh" />{statusProblem.value ? <Failed problem={statusProblem.value} again={() => void readStatus()} /> : <Waiting />}</>;
  const shown = all.filter((c) => c.name.toLowerCase().includes(text) && (!state || c.state === state));
  const column = columns.find((c) => c.id === sort.replace("-", ""));
  if (column) {
    const down = sort.startsWith("-") ? -1 : 1;
    shown.sort((a, b) => {
      const x = column.of(a), y = column.of(b);
      return down * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true }));
    });
  }
  const wrong = all.filter((c) => toneOf(c) === "bad" || toneOf(c) === "warn");
  const busy = all.filter((c) => toneOf(c) === "busy");
  return <>
    <Title text="Mesh"><Summary wrong={wrong.length} busy={busy} all={all.length} /></Title>
    <Tiles />
    <div class="filters" role="search" aria-label="Filter clusters">
      <Filter name="contains" label="Name contains" />
      <Filter name="state" label="State" options={["connecting", "syncing", "ready", "degraded", "failed", "removing"]} />
      <span class="muted" role="status">{shown.length} of {all.length} clusters</span>
    </div>
    <Scroll label="Clusters">
      <table>
        <caption class="unseen">Clusters</caption>
        <thead><tr>{columns.map((c) => <th key={c.id} scope="col" class={c.right ? "right" : undefined} aria-sort={column === c ? (sort.startsWith("-") ? "descending" : "ascending") : undefined}>
          <button type="button" class="sort" onClick={() => setQuery({ sort: sort === c.id ? `-${c.id}` : sort === `-${c.id}` ? "" : c.id })}>{c.title}<span aria-hidden="true">{column === c ? (sort.startsWith("-") ? " ↓" : " ↑") : ""}</span></button></th>)}
          <th scope="col">Problem</th></tr></thead>
        <Rows of={shown} by={`${text}\n${state}\n${sort}`} />
      </table>
    </Scroll>
    {all.length === 0 && <p class="note">No cluster is configured: the agent looks for client files in {status.value?.agent.meshDirectory || "its mesh directory"}.</p>}
  </>;
}

const sorted = computed(() => [...clusters.value.values()].sort(byTrouble));

function Tiles() {
  const all = sorted.value, small = all.length > 40;
  return <ul class={small ? "tiles small" : "tiles"} aria-label="Clusters, those with problems first">
    {useGradually(all, "", 60).map((c) => <Tile key={c.name} of={c} small={small} />)}
  </ul>;
}

function Tile({ of: c, small }: { of: Cluster; small: boolean }) {
  return <li><a class={`tile ${toneOf(c)}`} href={link(["clusters", c.name])} title={`${c.name}: ${stateOf(c)}`}>
    <Icon tone={toneOf(c)} /><span class={small ? "unseen" : "name"}>{c.name}</span><span class={small ? "unseen" : "muted"}>{stateOf(c)}</span></a></li>;
}

function Rows({ of, by }: { of: Cluster[]; by: string }) {
  return <tbody>{useGradually(of, by).map((c) => <Row key={c.name} of={c} />)}</tbody>;
}

function Row({ of: c }: { of: Cluster }) {
  const lag = lagOf(c.name), next = c.policy?.nextAt ? clock.value : 0;
  return useMemo(() => <tr>
    <th scope="row"><ClusterLink name={c.name} /></th>
    <td><Badge tone={toneOf(c)}>{stateOf(c)}</Badge></td>
    <td><Known f={worstOf(c)} /></td>
    {(["nodes", "services", "identities", "ips"] as Resource[]).map((r) => <td key={r} class="right">{c.counts[r]}</td>)}
    <td class="right">{lag === undefined ? <span class="muted" aria-label="none yet">-</span> : precise(lag)}</td>
    <td><Next of={c} /></td>
    <td class="wide"><Problem of={c} /></td>
  </tr>, [c, lag, next]); // what did not change is not compared
}

/** What is wrong with a cluster, or else the most urgent of what may go wrong. */
function Problem({ of: c }: { of: Cluster }) {
  const of = toneOf(c) !== "good" ? c : c.notices?.[0];
  return of ? <>{of.message} <CodeLink code={of.code} /></> : null;
}

/** How the clusters are together: what is wrong comes before what is under way. */
function summaryOf(wrong: number, busy: Cluster[], all: number): ["bad" | "busy" | "good", string] {
  const states = [...new Set(busy.map((c) => c.state))].sort();
  const underWay = states.map((s) => `${busy.filter((c) => c.state === s).length} ${s}`).join(", ");
  if (wrong) return ["bad", `${wrong} of ${all} clusters ${wrong === 1 ? "needs" : "need"} attention${underWay && `, ${underWay}`}`];
  if (busy.length) return ["busy", `${all - busy.length} of ${all} clusters ${all - busy.length === 1 ? "is" : "are"} healthy, ${underWay}`];
  return ["good", `${all} ${all === 1 ? "cluster is" : "clusters are"} healthy`];
}

function Summary({ wrong, busy, all }: { wrong: number; busy: Cluster[]; all: number }) {
  const s = status.value;
  const held = [...clusters.value.values()].find((c) => c.policy?.held)?.policy;
  const noticed = [...clusters.value.values()].filter((c) => c.notices?.length).length;
  const [tone, text] = summaryOf(wrong, busy, all);
  return <div class="summary">
    <Badge tone={tone}>{text}</Badge>
    {noticed > 0 && <Badge tone="warn">{noticed === 1 ? "1 cluster has a notice" : `${noticed} clusters have notices`}</Badge>}
    {held && <Badge tone="warn">the disconnect policy is held: {held.inDoubt} of {held.judged} clusters are in doubt at once <CodeLink code="MESH-1021" /></Badge>}
    {s && <ul class="numbers">
      <li><a href={link(["nodes"])}><b>{s.summary.nodes}</b> nodes</a></li>
      <li><a href={link(["services"])}><b>{s.summary.services}</b> services</a></li>
      <li><a href={link(["identities"])}><b>{s.summary.identities}</b> identities</a></li>
      <li><a href={link(["addresses"])}><b>{s.summary.ips}</b> addresses</a></li>
      <li><a href={link(["conflicts"])}><b>{s.summary.conflicts}</b> conflicts</a></li>
    </ul>}
  </div>;
}
