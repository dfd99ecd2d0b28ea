import { Ago, Badge, CodeLink, Facts, Notices, Scroll, Title, useSome, Waiting } from "../parts";
import { shortcuts, setShortcuts } from "../keys";
import { events, health, heard, live, status } from "../store";
import type { Health } from "../openapi";

const tone = (h: Health) => (h.state === "ok" ? "good" : h.state === "degraded" ? "bad" : "none");

export function Agent() {
  const s = status.value;
  const all = [...health.value.values()].sort((a, b) => Number(b.state === "degraded") - Number(a.state === "degraded") || a.name.localeCompare(b.name));
  const [some, more] = useSome(all, 50);
  return <>
    <Title text="Agent">{s && <Badge tone={s.state === "ready" ? "good" : s.state === "starting" ? "busy" : "warn"}>{s.state}</Badge>}</Title>
    {!s ? <Waiting /> : <>
      <Facts of={[
        ["Version", s.agent.version], ["Mode", s.agent.mode], ["Cluster", `${s.agent.cluster}${s.agent.clusterID ? `, ID ${s.agent.clusterID}` : ", read-only"}`], ["Node", s.agent.node],
        ["Started", <Ago at={s.agent.started} />], ["Mesh directory", s.agent.meshDirectory], ["Leads", s.agent.leads === undefined ? "" : s.agent.leads ? "yes" : "no: another process leads, or none can"],
        ["This page", live.value ? <Badge tone="good">live, last data <Ago at={heard.value} /></Badge> : <Badge tone="bad">not live</Badge>], ["Events kept", events.value.size],
        ["More", <><a href="../metrics">metrics</a>, <a href="../openapi.json">OpenAPI</a>, <a href="../">all paths</a></>],
      ]} />
      {s.tls && <section><h2>Certificates of the listeners</h2>
        <Notices of={s.tls.notices} />
        <Facts of={[["Server", s.tls.server && <>expires <Ago at={s.tls.server} /></>], ["Above it", s.tls.authority && <>expires <Ago at={s.tls.authority} /></>], ["Last authority of clients", s.tls.clientAuthority && <>expires <Ago at={s.tls.clientAuthority} /></>]]} /></section>}
      {s.ignored.length ? <section><h2>Ignored files</h2><ul class="plain">{s.ignored.map((i) => <li key={i.file}><code>{i.file}</code>: {i.reason}</li>)}</ul></section> : null}
      {s.kvstore && <section><h2>Own kvstore</h2>
        <Facts of={[["State", <Badge tone={s.kvstore.state === "ready" ? "good" : "warn"}>{s.kvstore.state}</Badge>], ["Message", s.kvstore.message && <>{s.kvstore.message} <CodeLink code={s.kvstore.code} /></>],
          ["Endpoints", s.kvstore.endpoints.join(", ")], ["Leases", s.kvstore.lease], ["Last error", s.kvstore.lastError],
          ["Written", s.kvstore.written?.length ? <ul class="plain">{s.kvstore.written.map((w) => <li key={w.prefix}><code>{w.prefix}</code> {w.entries} entries{w.pending > 0 && `, ${w.pending} pending`}{w.refused > 0 && <Badge tone="bad">{`${w.refused} refused: ${w.lastError}`}</Badge>}</li>)}</ul> : ""]]} /></section>}
      {s.description && <section><h2>Description of the own cluster</h2>
        <Facts of={[["Source", s.description.source], ["Known", <>as of <Ago at={s.description.asOf} /></>], ["Error", s.description.error], ["Objects", Object.entries(s.description.objects).map(([k, n]) => `${k} ${n}`).join(", ")], ["Refused", s.description.refused.slice(0, 20).join("; ")]]} /></section>}
    </>}
    <section><h2>Health</h2>
      <Scroll label="Health"><table>
        <caption class="unseen">Health of modules, tasks and connections</caption>
        <thead><tr><th scope="col">Name</th><th scope="col">State</th><th scope="col">Message</th><th scope="col" class="right">Failures in a row</th></tr></thead>
        <tbody>{some.map((h) => <tr key={h.name}><th scope="row">{h.name}</th><td><Badge tone={tone(h)}>{h.state}</Badge></td><td class="wide">{h.message}</td><td class="right">{h.consecutiveFailures}</td></tr>)}</tbody>
      </table></Scroll>{more}
    </section>
    <section><h2>Keys</h2>
      <p><kbd>/</kbd> or <kbd>Ctrl</kbd>+<kbd>K</kbd> searches, <kbd>↑</kbd> <kbd>↓</kbd> move in the results, <kbd>Esc</kbd> closes the search.</p>
      <p><label><input type="checkbox" checked={shortcuts.value} onChange={(e) => setShortcuts(e.currentTarget.checked)} /> <kbd>/</kbd> alone opens the search</label></p>
    </section>
  </>;
}
