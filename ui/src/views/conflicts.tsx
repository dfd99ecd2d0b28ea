import { Ago, Badge, ClusterLink, CodeLink, Copy, Filter, Remedy, Title, toneOfSeverity, useSome, Waiting } from "../parts";
import { linkTo } from "../kinds";
import type { Listed } from "../list";
import { link, route } from "../route";
import { codes, conflicts, known } from "../store";
import type { Conflict } from "../openapi";

const resourceOf: Partial<Record<Conflict["kind"], Listed>> = { "cluster-name": "clusters", "ip": "ips", "node-ip": "ips", "pod-cidr": "ips", "service-port": "services", "service-affinity": "services" };

export function Conflicts() {
  const { query } = route.value;
  const text = (query.get("contains") ?? "").toLowerCase(), kind = query.get("kind") ?? "", cluster = query.get("cluster") ?? "";
  const kinds = [...new Set([...conflicts.value.values()].map((c) => c.kind))].sort();
  return <>
    <Title text="Conflicts" />
    <p class="muted">Objects that several clusters claim or describe differently. The agent uses the claim of the first cluster.</p>
    <div class="filters" role="search" aria-label="Filter conflicts">
      <Filter name="contains" label="Contains" /><Filter name="kind" label="Kind" options={kinds} /><Filter name="cluster" label="Cluster" />
    </div>
    <ConflictTable of={(c) => (!kind || c.kind === kind) && (!cluster || c.clusters.includes(cluster)) && (!text || `${c.subject} ${c.message} ${c.code}`.toLowerCase().includes(text))} />
  </>;
}

export function ConflictTable({ of }: { of: (c: Conflict) => boolean }) {
  const all = [...conflicts.value.values()].filter(of);
  const [some, more] = useSome(all, 100);
  if (!known.value) return <Waiting />;
  if (!all.length) return <p><Badge tone="good">none</Badge></p>;
  return <><ul class="cards" aria-label="Conflicts">{some.map((c) => {
    const to = linkTo(resourceOf[c.kind] ?? "", c.subject);
    return <li key={`${c.kind}/${c.subject}`}>
      <p><Badge tone={toneOfSeverity(codes.value.get(c.code)?.severity)}>{c.kind}</Badge> <b>{to ? <a href={to}>{c.subject}</a> : c.subject}</b> <CodeLink code={c.code} /> <span class="muted">since <Ago at={c.since} /></span></p>
      <p>{c.message}</p>
      <p>Clusters: {c.clusters.map((name, i) => <span key={name}>{i > 0 && ", "}<ClusterLink name={name} /></span>)}{c.rule && `. ${c.rule}`}</p>
      {c.unlisted ? <p class="muted">{c.unlisted} more of this kind are not listed.</p> : null}
      <Remedy code={c.code} />
      <Copy text={() => `${c.kind} ${c.subject} (${c.code}) since ${c.since}\n${c.message}\nClusters: ${c.clusters.join(", ")}${c.rule && `. ${c.rule}`}`} to={link(["conflicts"], { kind: c.kind, contains: c.subject })} />
    </li>;
  })}</ul>{more}</>;
}
