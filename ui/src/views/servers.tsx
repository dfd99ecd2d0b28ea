import { useEffect } from "preact/hooks";
import { Problem } from "../api";
import { Ago, Badge, Failed, Scroll, ServiceLink, Title, Waiting } from "../parts";
import { useRead } from "../read";
import { readStatus, status, statusRead } from "../store";
import type { XDSClient, XDSClients } from "../openapi";

/** The servers of other protocols, and who follows them. Their numbers are of when they were read: no stream has them. */
export function Servers() {
  const clients = useRead<XDSClients>("v1/xds/clients", "");
  useEffect(() => { void readStatus(); }, []);
  const all = status.value?.serving ?? [];
  return <>
    <Title text="Servers" />
    <p class="muted">Other programs read the mesh from these servers. Read <Ago at={statusRead.value} /> <button type="button" onClick={() => { void readStatus(); clients.again(); }}>Read again</button></p>
    {!status.value ? <Waiting /> : all.length === 0 ? <p class="note">Neither DNS nor xDS is on: --dns and --xds turn them on.</p> : <Scroll label="Servers"><table>
      <caption class="unseen">Servers of other protocols</caption>
      <thead><tr><th scope="col">Protocol</th><th scope="col">Address</th><th scope="col" class="right">Answered</th><th scope="col" class="right">Refused, too many at once</th></tr></thead>
      <tbody>{all.map((s) => <tr key={s.protocol + s.address}><th scope="row">{s.protocol}</th><td>{s.address}</td><td class="right">{s.requests}</td><td class="right">{s.refused ? <Badge tone="warn">{s.refused}</Badge> : 0}</td></tr>)}</tbody>
    </table></Scroll>}
    <section><h2>Clients of xDS</h2>
      {clients.problem instanceof Problem && clients.problem.status === 404 ? <p class="muted">{clients.problem.message}</p>
        : clients.problem ? <Failed problem={clients.problem} again={clients.again} /> : !clients.value ? <Waiting />
        : clients.value.items.length === 0 ? <p>No client is connected.</p> : <Clients of={clients.value.items} />}
    </section>
    <section><h2>Prometheus</h2>
      <p>Targets over HTTP: <a href="../v1/discovery/prometheus/services">services</a>, <a href="../v1/discovery/prometheus/endpoints">endpoints</a>, nodes (with <code>?port=</code>). Metrics of the agent itself: <a href="../metrics">/metrics</a>.</p>
    </section>
  </>;
}

function Clients({ of }: { of: XDSClient[] }) {
  return <Scroll label="Clients of xDS"><table>
    <caption class="unseen">Clients of xDS</caption>
    <thead><tr><th scope="col">Client</th><th scope="col">Program</th><th scope="col">Since</th><th scope="col">Subscriptions</th></tr></thead>
    <tbody>{of.map((c) => <tr key={c.number}><th scope="row">{c.node || c.peer} <span class="muted">{c.node && c.peer}</span></th><td>{c.program}</td><td><Ago at={c.since} /></td>
      <td><ul class="plain">{c.follows.map((f) => <li key={f.type}>{f.type}: {f.all ? "all" : <Names of={f.names} />}{" "}
        <Badge tone={f.rejected && f.sent !== f.confirmed ? "bad" : f.sent === f.confirmed ? "good" : "busy"}>{f.sent === f.confirmed ? "confirmed" : "sent, not confirmed"}</Badge>
        {f.rejected > 0 && <> rejected {f.rejected} times, the last <Ago at={f.rejectedAt} />: {f.reason}</>}
        {f.withoutBackends.length ? <Badge tone="warn">{`without backends: ${f.withoutBackends.slice(0, 5).join(", ")}`}</Badge> : null}</li>)}</ul></td></tr>)}</tbody>
  </table></Scroll>;
}

function Names({ of }: { of: string[] }) {
  return <>{of.slice(0, 10).map((name, i) => {
    const m = /^(?:xds:\/\/\/)?([^/:]+)\/([^/:]+)(:.*)?$/.exec(name);
    return <span key={name}>{i > 0 && ", "}{m ? <><ServiceLink namespace={m[1]!} name={m[2]!} />{m[3]}</> : name}</span>;
  })}{of.length > 10 && ` and ${of.length - 10} more`}</>;
}
