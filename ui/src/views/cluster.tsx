import { pathOf } from "../api";
import { LastHour } from "../history";
import { nounOf } from "../kinds";
import { Ago, Badge, CodeLink, Copy, Facts, Known, Notices, Remedy, resourcesOf, Said, Scroll, stateOf, Title, toneOf, Waiting, Why, worstOf } from "../parts";
import { lossOf, remedyOf, sinceOf, textOf } from "../problems";
import { useRead } from "../read";
import { SharedWith, useSharing } from "../sharing";
import { link } from "../route";
import { clusters, known, status } from "../store";
import { precise } from "../time";
import type { Cluster as Of, Explanation } from "../openapi";
import { EventTable } from "./events";
import { ConflictTable } from "./conflicts";
import { Next } from "./mesh";

export function Cluster({ name }: { name: string }) {
  const c = clusters.value.get(name);
  const why = useRead<Explanation>(`v1/why/clusters/${pathOf(name)}`, "", true);
  const sharing = useSharing(name);
  if (!c) return <><Title text={`Cluster ${name}`} />{known.value ? <p class="note">There is no such cluster now.</p> : <Waiting />}</>;
  return <>
    <Title text={`Cluster ${name}`}><Badge tone={toneOf(c)}>{stateOf(c)}</Badge> {toneOf(c) !== "good" && sinceOf(c) && <span>since <Ago at={sinceOf(c)} /></span>} <Known f={worstOf(c)} /></Title>
    {toneOf(c) !== "good" && <div class={`note ${toneOf(c)}`}><p><Said text={c.message} /> <CodeLink code={c.code} /></p><Remedy code={c.code} remedy={remedyOf(c)} />
      {lossOf(c) && <p><strong>Affected:</strong> {lossOf(c)}.</p>}<Copy text={() => textOf(c)} to={link(["clusters", c.name])} /></div>}
    <Notices of={c.notices} />
    <Facts of={[
      ["ID", c.id || "not known yet"],
      ["Service backends", <>{c.policy ? { keep: "used", demote: "demoted: used only where no other cluster has a usable one", withdraw: "withdrawn: not used where another cluster has a usable one" }[c.policy.state] : "used"}{c.policy?.reason && <>; <Said text={once(c.policy.reason, c)} /></>}</>],
      ["Next step", <Next of={c} />],
      ["Shares", <SharedWith name={name} of={sharing} />],
      ["Connected", c.connectedSince ? <>since <Ago at={c.connectedSince} /></> : "no"],
      ["Failures", c.failures ? <>{c.failures}, the last <Ago at={c.lastFailure} />{!c.message.includes(c.lastError) && `: ${c.lastError}`}</> : ""],
      ["Endpoints", c.endpoints.join(", ")],
      ["etcd", [c.etcdVersion && `version ${c.etcdVersion}`, c.etcdClusterID && `cluster ID ${c.etcdClusterID}`].filter(Boolean).join(", ")],
      ["Client file", c.configFile],
      ["Read from", c.cached ? "a copy that a mirror keeps" : ""],
      ["Client certificate", c.certificateExpires ? <>expires <Ago at={c.certificateExpires} /></> : ""],
      ["Certificate of the etcd", c.certificates.server ? <>expires <Ago at={c.certificates.server} /></> : ""],
      ["Its authority", c.certificates.authority ? <>expires <Ago at={c.certificates.authority} /></> : ""],
      ["Says that it can", Object.entries(c.capabilities).map(([k, v]) => `${k}=${String(v)}`).join(", ")],
    ]} />
    <Resources of={c} />
    {c.refusals.map((r) => <div key={r.resource} class="note warn"><p>{r.count} {r.resource} are refused: {r.message} {r.key && <code>{r.key}</code>}</p>
      {Object.entries(r.remedies).map(([reason, remedy]) => <p key={reason} class="remedy"><strong>{reason} ({r.reasons[reason] ?? 0}):</strong> {remedy}</p>)}</div>)}
    <LastHour cluster={name} />
    {why.value && <Why of={why.value} />}
    <section><h2>Conflicts</h2><ConflictTable of={(x) => x.clusters.includes(name)} /></section>
    <section><h2>Events</h2><EventTable of={(e) => e.cluster === name} most={20} /><p><a href={link(["events"], { cluster: name })}>All events of this cluster</a></p></section>
  </>;
}

/** A text without the error that the page has said above. */
const once = (text: string, c: Of) => (c.lastError && c.message.includes(c.lastError) ? text.replace(`: ${c.lastError}`, "") : text);

function Resources({ of: c }: { of: Of }) {
  const lags = status.value?.clusters.find((x) => x.name === c.name)?.freshness;
  return <Scroll label="What is read of the cluster"><table>
    <caption class="unseen">What is read of the cluster</caption>
    <thead><tr><th scope="col">Resource</th><th scope="col">Data</th><th scope="col" class="right">Entries</th><th scope="col" class="right">Refused</th><th scope="col" class="right">Lag, median</th><th scope="col" class="right">99 of 100</th></tr></thead>
    <tbody>{resourcesOf(c).filter((r) => !c.freshness[r].notRead && (c.freshness[r].state !== "unknown" || c.counts[r] > 0)).map((r) => {
      const lag = lags?.[r]?.lag;
      return <tr key={r}><th scope="row">{nounOf(r)}</th><td><Known f={c.freshness[r]} /></td><td class="right">{c.counts[r]}</td><td class="right">{c.rejected[r]}</td>
        <td class="right">{lag ? precise(lag.medianSeconds) : "-"}</td><td class="right">{lag ? precise(lag.p99Seconds) : "-"}</td></tr>;
    })}</tbody>
  </table></Scroll>;
}
