import { Badge, CodeLink, ClusterLink, Facts, Filter, Scroll, Title, toneOfSeverity, Waiting } from "../parts";
import { route } from "../route";
import { clusters, codes } from "../store";
import { ConflictTable } from "./conflicts";
import { EventTable } from "./events";

export function Codes() {
  const { query } = route.value;
  const text = (query.get("contains") ?? "").toLowerCase(), severity = query.get("severity") ?? "";
  const shown = [...codes.value.values()].filter((c) => (!severity || c.severity === severity) && (!text || `${c.code} ${c.title} ${c.cause}`.toLowerCase().includes(text)));
  return <>
    <Title text="Codes" />
    <div class="filters" role="search" aria-label="Filter codes"><Filter name="contains" label="Contains" /><Filter name="severity" label="Severity" options={["info", "warning", "error"]} />
      <span class="muted" role="status">{shown.length} of {codes.value.size} codes</span></div>
    {codes.value.size === 0 ? <Waiting /> : <Scroll label="Codes"><table>
      <caption class="unseen">Codes</caption>
      <thead><tr><th scope="col">Code</th><th scope="col">Severity</th><th scope="col">Title</th><th scope="col">What to do</th></tr></thead>
      <tbody>{shown.map((c) => <tr key={c.code}><th scope="row"><CodeLink code={c.code} /></th><td><Badge tone={toneOfSeverity(c.severity)}>{c.severity}</Badge></td><td class="wide">{c.title}</td><td class="wide">{c.remedy}</td></tr>)}</tbody>
    </table></Scroll>}
  </>;
}

export function Code({ code }: { code: string }) {
  const c = codes.value.get(code);
  const of = [...clusters.value.values()].filter((x) => x.code === code || x.policy?.code === code);
  return <>
    <Title text={`Code ${code}`} />
    {!c ? (codes.value.size ? <p class="note">This agent has no such code.</p> : <Waiting />) : <>
      <Facts of={[["Title", c.title], ["Severity", <Badge tone={toneOfSeverity(c.severity)}>{c.severity}</Badge>], ["Cause", c.cause], ["What to do", c.remedy]]} />
      {of.length > 0 && <section><h2>Clusters with this code now</h2><ul class="plain">{of.map((x) => <li key={x.name}><ClusterLink name={x.name} />: {x.message}</li>)}</ul></section>}
      <section><h2>Conflicts</h2><ConflictTable of={(x) => x.code === code} /></section>
      <section><h2>Events</h2><EventTable of={(e) => e.code === code} most={50} /></section>
    </>}
  </>;
}
