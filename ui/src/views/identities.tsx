import { pathOf } from "../api";
import { ClusterLink, Facts, Failed, Labels, Title, Waiting, Why } from "../parts";
import type { Kind } from "../list";
import { useRead } from "../read";
import { link } from "../route";
import type { Explanation, Identity as Of } from "../openapi";

export const identities: Kind<"identities"> = {
  resource: "identities", path: "identities", title: "Identities", noun: "identities", singular: "Identity", key: (i) => `${i.id}/${i.cluster}`,
  parts: 1, view: (id) => <Identity id={id} />, linkTo: (name) => link(["identities", name.split("/")[0] ?? ""]),
  filters: [{ name: "identity", label: "Number" }, { name: "cluster", label: "Cluster" }, { name: "namespace", label: "Namespace" }, { name: "labels", label: "Labels", hint: "app=web" }],
  columns: [
    { title: "Number", right: true, cell: (i) => <a href={link(["identities", String(i.id)])}>{i.id}</a> },
    { title: "Cluster", cell: (i) => <ClusterLink name={i.cluster} /> },
    { title: "Labels", cell: (i) => <Labels of={i.labels} /> },
  ],
};

function Identity({ id }: { id: string }) {
  const watch = new URLSearchParams({ resource: "identities", identity: id }).toString();
  const identity = useRead<Of>(`v1/identities/${pathOf(id)}`, watch), why = useRead<Explanation>(`v1/why/identities/${pathOf(id)}`, watch);
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
