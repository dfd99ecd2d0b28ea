import { pathOf } from "../api";
import { AddressLink, ClusterLink, Facts, Failed, Labels, Title, Waiting, Why } from "../parts";
import type { Kind } from "../list";
import { useRead } from "../read";
import { link } from "../route";
import type { Explanation, Node as Of } from "../openapi";

export const nodes: Kind<"nodes"> = {
  resource: "nodes", path: "nodes", title: "Nodes", noun: "nodes", singular: "Node", key: (n) => `${n.cluster}/${n.name}`,
  parts: 2, view: (cluster, name) => <Node cluster={cluster} name={name} />, found: () => "",
  filters: [{ name: "contains", label: "Name contains" }, { name: "cluster", label: "Cluster" }, { name: "prefix", label: "Address or prefix", hint: "10.0.0.0/8" }, { name: "labels", label: "Labels", hint: "zone=a" }],
  columns: [
    { title: "Node", cell: (n) => <a href={link(["nodes", n.cluster, n.name])}>{n.name}</a> },
    { title: "Cluster", cell: (n) => <ClusterLink name={n.cluster} /> },
    { title: "Address", cell: (n) => <AddressLink ip={(n.addresses.find((a) => a.type === "InternalIP") ?? n.addresses[0])?.ip ?? ""} /> },
    { title: "Pod networks", cell: (n) => n.podCIDRs.join(", ") },
    { title: "Zone", cell: (n) => n.labels["topology.kubernetes.io/zone"] ?? "" },
  ],
};

function Node({ cluster, name }: { cluster: string; name: string }) {
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
