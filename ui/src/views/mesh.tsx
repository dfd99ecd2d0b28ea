import { computed, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Ago, Badge, ClusterLink, CodeLink, Copy, Failed, Filter, Icon, Known, Said, Scroll, stateOf, Title, toneOf, useGradually, Waiting, worstOf } from "../parts";
import { Picture } from "../picture";
import { busy, kinds, loss, lossOf, progress, remedyOf, severityOf, sinceOf, sorted, textOf, verdict, wrong } from "../problems";
import { LastHour } from "../history";
import { counted } from "../kinds";
import { link, route, setQuery } from "../route";
import { clusters, known, status, statusProblem, readStatus } from "../store";
import { clock, duration, precise } from "../time";
import type { Cluster } from "../openapi";

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
    for (const f of Object.values(c.freshness)) if (f.lag) all.set(c.name, Math.max(all.get(c.name) ?? 0, f.lag.p99Seconds));
  }
  return all;
});

const columns: { id: string; title: string; right?: boolean; of: (c: Cluster) => number | string }[] = [
  { id: "name", title: "Cluster", of: (c) => c.name },
  { id: "state", title: "State", of: severityOf },
  { id: "known", title: "Data", of: (c) => { const f = worstOf(c); return f.state === "synced" ? Number.MAX_VALUE : f.asOf ? Date.parse(f.asOf) : 0; } },
  ...counted.map((k) => ({ id: k.resource, title: k.title, right: true, of: (c: Cluster) => c.counts[k.resource] })),
  { id: "lag", title: "Lag", right: true, of: (c) => lagOf(c.name) ?? -1 },
  { id: "next", title: "Next step", of: (c) => c.policy?.nextAt ?? "" },
];

export function Mesh() {
  const { query } = route.value;
  const text = (query.get("contains") ?? "").toLowerCase(), state = query.get("state") ?? "", sort = query.get("sort") ?? "";
  const all = [...sorted.value];
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
  return <>
    <Title text="Mesh"><Summary /></Title>
    <FirstLine />
    <Glance />
    <div class="overview"><Picture /><Tiles /></div>
    <div class="filters" role="search" aria-label="Filter clusters">
      <Filter name="contains" label="Name contains" />
      <Filter name="state" label="State" options={["connecting", "syncing", "ready", "degraded", "failed", "removing"]} />
      <span class="muted" role="status">{shown.length} of {all.length} clusters</span>
    </div>
    {narrow.value ? <Cards of={shown} by={`${text}\n${state}\n${sort}`} /> : <Scroll label="Clusters">
      <table>
        <caption class="unseen">Clusters</caption>
        <thead><tr>{columns.map((c) => <th key={c.id} scope="col" class={c.right ? "right" : undefined} aria-sort={column === c ? (sort.startsWith("-") ? "descending" : "ascending") : undefined}>
          <button type="button" class="sort" onClick={() => setQuery({ sort: sort === c.id ? `-${c.id}` : sort === `-${c.id}` ? "" : c.id })}>{c.title}<span aria-hidden="true">{column === c ? (sort.startsWith("-") ? " ↓" : " ↑") : ""}</span></button></th>)}
          <th scope="col">Problem</th></tr></thead>
        <Rows of={shown} by={`${text}\n${state}\n${sort}`} />
      </table>
    </Scroll>}
    {all.length > 0 && <LastHour />}
    {all.length === 0 && <p class="note">No cluster is configured: the agent looks for client files in {status.value?.agent.meshDirectory || "its mesh directory"}.</p>}
  </>;
}

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
  const lag = lagOf(c.name), next = c.policy?.nextAt ? clock.value : 0, above = isAbove(c);
  return useMemo(() => <tr>
    <th scope="row"><ClusterLink name={c.name} /></th>
    <td><Badge tone={toneOf(c)}>{stateOf(c)}</Badge></td>
    <td><Known f={worstOf(c)} /></td>
    {counted.map((k) => <td key={k.path} class="right">{c.counts[k.resource]}</td>)}
    <td class="right">{lag === undefined ? <span class="muted" aria-label="none yet">-</span> : precise(lag)}</td>
    <td><Next of={c} /></td>
    <td class="wide"><Problem of={c} above={above} /></td>
  </tr>, [c, lag, next, above]); // what did not change is not compared
}

/** What is wrong with a cluster, or else the most urgent of what may go wrong; what stands above in full is named by its code. */
function Problem({ of: c, above = false }: { of: Cluster; above?: boolean }) {
  const of = toneOf(c) !== "good" ? c : c.notices[0];
  return of ? <>{!above && <Said text={of.message} />} <CodeLink code={of.code} /></> : null;
}

const phone = matchMedia("(max-width: 480px)");
const narrow = signal(phone.matches);
phone.addEventListener("change", () => { narrow.value = phone.matches; });

/** A card for each cluster, where a table would be cut. */
function Cards({ of, by }: { of: Cluster[]; by: string }) {
  return <ul class="cards clusters" aria-label="Clusters">{useGradually(of, by).map((c) => <Card key={c.name} of={c} />)}</ul>;
}

function Card({ of: c }: { of: Cluster }) {
  const lag = lagOf(c.name);
  return <li class={toneOf(c)}>
    <p class="head"><b><ClusterLink name={c.name} /></b> <Badge tone={toneOf(c)}>{stateOf(c)}</Badge></p>
    <p><Known f={worstOf(c)} />{lag !== undefined && <span class="muted"> lag {precise(lag)}</span>}</p>
    <ul class="numbers">{counted.map((k) => <li key={k.path}><b>{c.counts[k.resource]}</b> {k.noun}</li>)}</ul>
    {toneOf(c) === "good" && !c.notices.length ? null : <><p><Problem of={c} above={isAbove(c)} /></p><p class="muted">Next step: <Next of={c} /></p></>}
  </li>;
}

const mostShown = 5;
const isAbove = (c: Cluster) => wrong.value.slice(0, mostShown).includes(c);

/** What the command status says first, in its words. */
function FirstLine() {
  const s = status.value;
  return s?.reason ? <p class={`note first ${wrong.value.length ? "bad" : busy.value.length ? "busy" : "warn"}`}><b>{s.state}</b>: {s.reason}</p> : null;
}

/** What is wrong, since when, and who is affected; the rest of the view is for those who want to know more. */
function Glance() {
  const all = wrong.value, each = all.slice(0, mostShown);
  if (!all.length) return null;
  return <section class="glance" aria-label="What is wrong">
    {all.length > 1 && loss.value && <p class="note bad">{loss.value}.</p>}
    <ul class="cards">{each.map((c) => {
      const since = sinceOf(c), lost = lossOf(c), remedy = remedyOf(c);
      return <li key={c.name} class={toneOf(c)}>
        <p class="head"><b><ClusterLink name={c.name} /></b> <Badge tone={toneOf(c)}>{stateOf(c)}</Badge> {since && <span>since <Ago at={since} /></span>} <Known f={worstOf(c)} /></p>
        <p><Problem of={c} /></p>
        {lost && <p><strong>Affected:</strong> {lost}.</p>}
        {remedy && <details><summary>What to do</summary><p>{remedy}</p></details>}
        <Copy text={() => textOf(c)} to={link(["clusters", c.name])} />
      </li>;
    })}</ul>
    {all.length > each.length && <p class="muted">{all.length - each.length} more are in the table below.</p>}
  </section>;
}

function Summary() {
  const s = status.value;
  const held = [...clusters.value.values()].find((c) => c.policy?.held)?.policy;
  const noticed = [...clusters.value.values()].filter((c) => c.notices.length).length;
  const [tone, text] = verdict.value, of = progress.value;
  return <div class="summary">
    <Badge tone={tone}>{text}</Badge>
    {busy.value.length > 0 && <span class="progress"><progress max={of.total || of.of} value={of.total ? of.read : of.complete} aria-label="First copies of the clusters" />
      {of.total > 0 && <span class="muted"> {of.read} of {of.total} entries of {busy.value.length} more</span>}</span>}
    {kinds.value.length > 1 && <ul class="numbers" aria-label="Clusters by state">{kinds.value.map((k) => <li key={k.kind}><Badge tone={k.tone}>{k.n} {k.kind}</Badge></li>)}</ul>}
    {noticed > 0 && <Badge tone="warn">{noticed === 1 ? "1 cluster has a notice" : `${noticed} clusters have notices`}</Badge>}
    {held && <Badge tone="warn" long>the disconnect policy is held: {held.inDoubt} of {held.judged} clusters are in doubt at once <CodeLink code="MESH-1021" /></Badge>}
    {s && <ul class="numbers" aria-label="Objects of all clusters">
      {counted.map((k) => <li key={k.path}><a href={link([k.path])}><b>{s.summary[k.resource]}</b> {k.noun}</a></li>)}
      <li><a href={link(["conflicts"])}><b>{s.summary.conflicts}</b> conflicts</a></li>
    </ul>}
  </div>;
}
