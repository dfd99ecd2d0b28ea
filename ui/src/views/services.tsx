import { AddressLink, Badge, ClusterLink, Facts, Failed, Filter, Known, Scroll, ServiceLink, Title, useSome, Waiting, Why } from "../parts";
import type { Kind } from "../list";
import { pathOf } from "../api";
import { useRead } from "../read";
import { route } from "../route";
import { clusters } from "../store";
import type { Backend, Explanation, Service as Of, ServiceBackends } from "../openapi";

const ports = (b: Backend) => b.ports.map((p) => `${p.name ? `${p.name} ` : ""}${p.port}/${p.protocol}`).join(", ");

export const services: Kind<"services"> = {
  resource: "services", path: "services", title: "Services", noun: "services", singular: "Service", key: (s) => `${s.namespace}/${s.name}`,
  parts: 2, view: (namespace, name) => <Service namespace={namespace} name={name} />, found: (s) => `${s.backends.length} backends`,
  filters: [{ name: "contains", label: "Name contains", hint: "web" }, { name: "namespace", label: "Namespace" }, { name: "cluster", label: "Cluster" }, { name: "labels", label: "Labels", hint: "app=web,tier!=db" }],
  columns: [
    { title: "Service", cell: (s) => <ServiceLink namespace={s.namespace} name={s.name} /> },
    { title: "Shared", cell: (s) => (s.global ? "yes" : "no") },
    { title: "Affinity", cell: (s) => s.affinity },
    { title: "Backends", right: true, cell: (s) => s.backends.length },
    { title: "Clusters", cell: (s) => <span class="wide">{s.clusters.slice(0, 8).map((c, i) => <span key={c.cluster}>{i > 0 && ", "}<ClusterLink name={c.cluster} /> {c.backends}</span>)}{s.clusters.length > 8 && ` and ${s.clusters.length - 8} more`}</span> },
  ],
};

/** Why a backend is used, or is not: its place in what connections choose from, or its own state. */
function reasonOf(b: Backend, choice: ServiceBackends | null, clusterReason: string): [tone: "good" | "warn" | "none", text: string] {
  const is = (c: { ip: string; cluster: string }) => c.ip === b.ip && c.cluster === b.cluster;
  const state = b.terminating ? (b.serving ? "terminating, still answers" : "terminating") : b.ready ? "" : "not ready";
  const g = choice?.groups.findIndex((x) => x.backends.some(is)) ?? -1;
  if (g === 0) return ["good", "receives connections"];
  if (g > 0) return ["warn", `receives connections when ${g === 1 ? "the first group has" : `the first ${g} groups have`} no backend`];
  if (choice?.groups.some((x) => x.draining.some(is))) return ["warn", `drains: ${state || "only existing connections"}`];
  return ["none", `not used: ${state || clusterReason}`];
}

function Service({ namespace, name }: { namespace: string; name: string }) {
  const { query } = route.value;
  const zone = query.get("zone") ?? "", port = query.get("port") ?? "";
  const at = pathOf(namespace, name);
  const asked = new URLSearchParams();
  if (zone) asked.set("zone", zone);
  if (port) asked.set("port", port);
  const watch = new URLSearchParams({ resource: "services", namespace, name }).toString();
  const service = useRead<Of>(`v1/services/${at}`, watch);
  const choice = useRead<ServiceBackends>(`v1/backends/${at}${asked.size ? `?${asked}` : ""}`, watch);
  const why = useRead<Explanation>(`v1/why/services/${at}`, watch);
  const s = service.value;
  const [clusterRows, moreClusters] = useSome(s?.clusters ?? [], 50);
  return <>
    <Title text={`Service ${namespace}/${name}`} />
    {service.problem ? <Failed problem={service.problem} again={service.again} /> : null}
    {!s && !service.problem ? <Waiting /> : null}
    {s && <>
      <Facts of={[["Shared", s.global ? "yes: other clusters may use it" : "no cluster shares it"], ["Affinity", s.affinity], ["Backends", s.backends.length],
        ["Not known as of now", choice.value?.unconfirmed.length ? choice.value.unconfirmed.join(", ") : ""]]} />
      <section><h2>Clusters</h2><Scroll label="Clusters of the service"><table>
        <thead><tr><th scope="col">Cluster</th><th scope="col">Data</th><th scope="col" class="right">Backends</th><th scope="col">Why they are used, or not</th></tr></thead>
        <tbody>{clusterRows.map((c) => <tr key={c.cluster}><th scope="row"><ClusterLink name={c.cluster} /></th><td><Known f={clusters.value.get(c.cluster)?.freshness.services} /></td><td class="right">{c.backends}</td><td class="wide">{c.reason}</td></tr>)}</tbody>
      </table></Scroll>{moreClusters}</section>
      <section><h2>Backends</h2>
        <div class="filters"><Filter name="zone" label="As asked from zone" hint={choice.value?.zone || "that of the agent"} wait={250} /><Filter name="port" label="Port" hint="name or number" wait={250} /></div>
        {choice.problem ? <Failed problem={choice.problem} again={choice.again} /> : null}
        {choice.value && <Groups of={choice.value} />}
        <Backends of={s} choice={choice.value} />
      </section>
    </>}
    {why.value && <Why of={why.value} />}
  </>;
}

function Groups({ of }: { of: ServiceBackends }) {
  if (!of.groups.length) return <p class="note warn">Connections to it fail: no backend takes them.</p>;
  return <ol class="groups" aria-label="Groups of backends, best first">{of.groups.map((g, i) => <li key={i}>
    <b>{g.backends.length}</b> take connections{g.draining.length > 0 && `, ${g.draining.length} drain`}: {g.near === "anywhere" ? "anywhere" : `in the ${g.near}`}
    {g.side !== "any" && `, ${g.side}`}{g.use !== "full" && `, of clusters that are ${g.use}`}{i === 0 && <span class="muted"> (first choice)</span>}</li>)}</ol>;
}

function Backends({ of: s, choice }: { of: Of; choice: ServiceBackends | null }) {
  const sorted = [...s.backends].sort((a, b) => a.cluster.localeCompare(b.cluster, undefined, { numeric: true }) || a.zone.localeCompare(b.zone) || a.ip.localeCompare(b.ip, undefined, { numeric: true }));
  const [some, more] = useSome(sorted, 100);
  const groups = Map.groupBy(some, (b) => `${b.cluster}\n${b.zone}`);
  const reasons = new Map(s.clusters.map((c) => [c.cluster, c.reason]));
  return <><Scroll label="Backends by cluster and zone"><table>
    <caption class="unseen">Backends by cluster and zone</caption>
    <thead><tr><th scope="col">Address</th><th scope="col">Ports</th><th scope="col">Node</th><th scope="col">Used</th></tr></thead>
    {[...groups.values()].map((all) => {
      const { cluster, zone } = all[0]!;
      return <tbody key={`${cluster}\n${zone}`}>
        <tr class="group"><th scope="rowgroup" colSpan={4}><ClusterLink name={cluster} />, {zone ? `zone ${zone}` : "no zone"}: {all.length}</th></tr>
        {all.map((b) => {
          const [tone, text] = reasonOf(b, choice, reasons.get(b.cluster) ?? "");
          return <tr key={b.ip}><td><AddressLink ip={b.ip} />{b.hostname && <span class="muted"> {b.hostname}</span>}</td><td>{ports(b)}</td><td>{b.node}</td><td><Badge tone={tone} long>{text}</Badge>{b.preferred && <span class="muted"> preferred by affinity</span>}</td></tr>;
        })}
      </tbody>;
    })}
  </table></Scroll>{more}{s.backends.length === 0 && <p>It has no backends.</p>}</>;
}


