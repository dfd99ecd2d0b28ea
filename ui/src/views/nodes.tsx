import { pathOf } from "../api";
import { AddressLink, ClusterLink, Facts, Failed, Labels, Title, Waiting, Why } from "../parts";
import { type ListOf, ListView } from "../list";
import { useRead } from "../read";
import { link } from "../route";
import type { Explanation, Identity, Node as Of } from "../types";

const list: ListOf<Of> = {
  title: "Nodes", resource: "nodes", noun: "nodes", key: (n) => `${n.cluster}/${n.name}`,
  filters: [{ name: "contains", label: "Name contains" }, { name: "cluster", label: "Cluster" }, { name: "prefix", label: "Address or prefix", hint: "10.0.0.0/8" }, { name: "labels", label: "Labels", hint: "zone=a" }],
  columns: [
    { title: "Node", cell: (n) => <a href={link(["nodes", n.cluster, n.name])}>{n.name}</a> },
    { title: "Cluster", cell: (n) => <ClusterLink name={n.cluster} /> },
    { title: "Address", cell: (n) => <AddressLink ip={(n.addresses.find((a) => a.type === "InternalIP") ?? n.addresses[0])?.ip ?? ""} /> },
    { title: "Pod networks", cell: (n) => n.podCIDRs.join(", ") },
    { title: "Zone", cell: (n) => n.labels["topology.kubernetes.io/zone"] ?? "" },
  ],
};

export const Nodes = () => <ListView of={list} />;

export function Node({ cluster, name }: { cluster: string; name: string }) {
  const at = pathOf(cluster, name), watch = new URLSearchParams({ resource: "nodes", cluster, name }).toString();
  const node = useRead<Of>(`v1/nodes/${at}`, watch), why = useRead<Explanation>(`v1/why/nodes/${at}`, watch);
  const n = node.value;
  return <>
    <Title text={`Node ${cluster}/${name}`} />
    {node.problem ? <Failed problem={node.problem} again={node.again} /> : n ? <Facts of={[
      ["Cluster", <ClusterLink name={n.cluster} />],
      ["Addresses", <ul class="plain">{n.addresses.map((a) => <li key={a.ip}><AddressLink ip={a.ip} /> <span class="muted">{a.type}</span></li>)}</ul>],
      ["Pod networks", <ul class="plain">{n.podCIDRs.map((p) => <li key={p}><a href={link(["addresses"], { prefix: p })}>{p}</a></li>)}</ul>],
      ["Health addresses", n.healthIPs.join(", ")], ["Ingress addresses", n.ingressIPs.join(", ")],
      ["Encryption", n.wireguardPublicKey ? `WireGuard ${n.wireguardPublicKey}` : n.encryptionKey ? `IPsec, key ${n.encryptionKey}` : "none"],
      ["Boot", n.bootID], ["Labels", <Labels of={n.labels} />], ["Annotations", Object.keys(n.annotations).length ? <Labels of={n.annotations} /> : ""],
    ]} /> : <Waiting />}
    {why.value && <Why of={why.value} />}
  </>;
}

const identities: ListOf<Identity> = {
  title: "Identities", resource: "identities", noun: "identities", key: (i) => `${i.id}/${i.cluster}`,
  filters: [{ name: "identity", label: "Number" }, { name: "cluster", label: "Cluster" }, { name: "namespace", label: "Namespace" }, { name: "labels", label: "Labels", hint: "app=web" }],
  columns: [
    { title: "Number", right: true, cell: (i) => <a href={link(["identities", String(i.id)])}>{i.id}</a> },
    { title: "Cluster", cell: (i) => <ClusterLink name={i.cluster} /> },
    { title: "Labels", cell: (i) => <Labels of={i.labels} /> },
  ],
};

export const Identities = () => <ListView of={identities} />;

export function IdentityView({ id }: { id: string }) {
  const watch = new URLSearchParams({ resource: "identities", identity: id }).toString();
  const identity = useRead<Identity>(`v1/identities/${pathOf(id)}`, watch), why = useRead<Explanation>(`v1/why/identities/${pathOf(id)}`, watch);
  const i = identity.value;
  return <>
    <Title text={`Identity ${id}`} />
    {identity.problem ? <Failed problem={identity.problem} again={identity.again} /> : i ? <Facts of={[
      ["Cluster", i.cluster ? <ClusterLink name={i.cluster} /> : "reserved"], ["Labels", <Labels of={i.labels} />],
      ["Addresses", <a href={link(["addresses"], { identity: id })}>those with this identity</a>],
    ]} /> : <Waiting />}
    {why.value && <Why of={why.value} />}
  </>;
}
