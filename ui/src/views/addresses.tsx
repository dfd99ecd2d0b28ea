import { pathOf } from "../api";
import { AddressLink, Ago, Badge, ClusterLink, Facts, Failed, Known, Labels, Scroll, ServiceLink, Title, Waiting, Why } from "../parts";
import type { Kind } from "../list";
import { useRead } from "../read";
import { alone, link, linkToAddress } from "../route";
import type { Lookup } from "../openapi";

export const addresses: Kind<"ips"> = {
  resource: "ips", path: "addresses", title: "Addresses", noun: "addresses", singular: "Address", key: (i) => i.prefix,
  parts: 1, view: (address) => <Address address={address} />, linkTo: linkToAddress, found: (i) => (i.pod ? `${i.namespace}/${i.pod}, ${i.cluster}` : `${i.kind}, ${i.cluster}`),
  filters: [{ name: "contains", label: "Address or pod contains" }, { name: "prefix", label: "Within", hint: "10.0.0.0/8" }, { name: "cluster", label: "Cluster" }, { name: "namespace", label: "Namespace" },
    { name: "identity", label: "Identity" }, { name: "labels", label: "Labels", hint: "app=web" }],
  columns: [
    { title: "Prefix", cell: (i) => <AddressLink ip={i.prefix} /> },
    { title: "Kind", cell: (i) => i.kind },
    { title: "Cluster", cell: (i) => <ClusterLink name={i.cluster} /> },
    { title: "Pod", cell: (i) => (i.pod ? `${i.namespace}/${i.pod}` : "") },
    { title: "Identity", right: true, cell: (i) => <a href={link(["identities", String(i.identity)])}>{i.identity}</a> },
    { title: "Node", cell: (i) => i.hostIP },
    { title: "Claims", right: true, cell: (i) => (i.claims > 1 ? <Badge tone="warn">{i.claims}</Badge> : i.claims) },
  ],
};

const prefixOf = (address: string) => (/^[0-9a-fA-F:.]+$/.test(address) ? address : "");

function Address({ address }: { address: string }) {
  const prefix = prefixOf(address);
  const found = useRead<Lookup>(`v1/lookup/${pathOf(address)}`, prefix ? new URLSearchParams({ resource: "ips", prefix }).toString() : "");
  const l = found.value, m = l?.match;
  return <>
    <Title text={`Owner of ${address}`} />
    {found.problem ? <Failed problem={found.problem} again={found.again} /> : !l ? <Waiting /> : <>
      {m ? <p class="verdict">{m.pod ? <>Pod <b>{m.namespace}/{m.pod}</b></> : <>A <b>{m.kind}</b> address</>} of <ClusterLink name={m.cluster} /> {l.freshness && (alone(m.prefix) ? <Known f={l.freshness} /> : <>, read <Ago at={found.at} /> <button type="button" onClick={found.again}>Read again</button></>)}</p>
        : <p class="note warn">No cluster claims this address.</p>}
      {l.unconfirmed.length > 0 && <p class="note warn">These clusters may claim it now, or may have withdrawn a claim: {l.unconfirmed.join(", ")}.</p>}
      {m && <Facts of={[
        ["Prefix", m.prefix], ["Kind", m.kind],
        ["Identity", <><a href={link(["identities", String(m.identity)])}>{m.identity}</a>{l.identity && <Labels of={l.identity.labels} />}</>],
        ["Node", l.node ? <a href={link(["nodes", l.node.cluster, l.node.name])}>{l.node.cluster}/{l.node.name}</a> : m.hostIP],
        ["Encryption key", m.encryptionKey || ""],
        ["Backend of", l.services.length ? <ul class="plain">{l.services.map((s) => <li key={`${s.namespace}/${s.name}`}><ServiceLink {...s} /></li>)}</ul> : "no service"],
        ["Known", l.freshness?.asOf ? <>as of <Ago at={l.freshness.asOf} /></> : ""],
      ]} />}
      {l.candidates.length > 0 && <section><h2>Claims</h2><Scroll label="Claims of the address"><table>
        <thead><tr><th scope="col">Claim</th><th scope="col">Cluster</th><th scope="col">Pod</th><th scope="col">Outcome</th><th scope="col">Rule</th></tr></thead>
        <tbody>{l.candidates.map((c, i) => <tr key={i}><td>{c.entry.prefix} <span class="muted">{c.entry.kind}</span></td><td><ClusterLink name={c.entry.cluster} /></td><td>{c.entry.pod && `${c.entry.namespace}/${c.entry.pod}`}</td>
          <td><Badge tone={c.won ? "good" : "none"}>{c.won ? "won" : "lost"}</Badge></td><td class="wide">{c.reason}</td></tr>)}</tbody>
      </table></Scroll></section>}
      <Why of={l.why} />
    </>}
  </>;
}
