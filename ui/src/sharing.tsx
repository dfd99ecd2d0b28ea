// Who shares services with whom, in numbers: of all clusters while they are few, or of one.
import { effect, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "./api";
import { Ago, ClusterLink, Scroll } from "./parts";
import { clusters, live } from "./store";
import { now } from "./time";
import type { Sharing } from "./openapi";

const apart = 10_000; // milliseconds between two reads

export interface Shared { value: Sharing | null; at: number; problem: string; again: () => void }

/** Reads who shares with a cluster, or with each other; nothing for undefined. It is read again after a change of the clusters. */
export function useSharing(of: string | undefined): Shared {
  const state = useSignal<{ of?: string | undefined; value: Sharing | null; at: number; problem: string }>({ value: null, at: 0, problem: "" });
  const round = useSignal(0);
  useEffect(() => {
    if (of === undefined) return;
    const abort = new AbortController();
    let timer = 0, last = 0, before = "";
    const read = () => {
      timer = 0;
      last = Date.now();
      get<Sharing>(`v1/sharing${of && `?cluster=${encodeURIComponent(of)}`}`, abort.signal).then(({ value }) => {
        state.value = { of, value, at: now(), problem: "" };
      }, (e) => { if (!abort.signal.aborted) state.value = { ...state.peek(), of, problem: String(e.message ?? e) }; });
    };
    const stop = effect(() => {
      const present = [...clusters.value.values()].map((c) => `${c.name} ${c.counts.services} ${c.freshness.services.state}`).join("\n");
      if (!live.value) { before = ""; return; } // it is read again when the agent answers
      if (present !== before && !timer) timer = window.setTimeout(read, Math.max(0, last + apart - Date.now()));
      before = present;
    });
    return () => { stop(); abort.abort(); clearTimeout(timer); };
  }, [of, round.value]);
  const s = state.value.of === of ? state.value : { value: null, at: 0, problem: "" };
  return { ...s, again: () => { round.value++; } };
}

/** What a cluster shares with others as text; what was never read of others is said. */
export function SharedWith({ name, of }: { name: string; of: Shared }) {
  if (of.problem) return <>not known: {of.problem}</>;
  if (!of.value) return <>reading…</>;
  const one = of.value.items.find((i) => i.cluster === name), doubt = of.value.unconfirmed;
  const with_ = Object.entries(one?.with ?? {}).sort(([a, x], [b, y]) => y - x || a.localeCompare(b, undefined, { numeric: true }));
  const most = 12;
  return <>{doubt.includes(name) && <>as far as it was read: </>}
    {one ? <>{one.services} {one.services === 1 ? "service" : "services"}{with_.length > 0 ? <>: {with_.slice(0, most).map(([c, n], i) => <span key={c}>{i > 0 && ", "}{n} with <ClusterLink name={c} /></span>)}{with_.length > most && `, and with ${with_.length - most} more`}</> : ", none with another cluster"}</> : "no service"}
    {doubt.length > 0 && <span class="muted">. Not confirmed now: {doubt.slice(0, 5).join(", ")}{doubt.length > 5 && ` and ${doubt.length - 5} more`}</span>}
    . <span class="muted">Read <Ago at={of.at} />.</span></>;
}

/** How many services each two clusters share. */
export function SharingTable({ of }: { of: Sharing }) {
  const names = of.items.map((i) => i.cluster);
  if (names.length < 2) return null;
  return <details><summary>Shared services as a table</summary><Scroll label="Services that two clusters share"><table>
    <caption class="unseen">Services that two clusters share</caption>
    <thead><tr><th scope="col">Cluster</th>{names.map((n) => <th key={n} scope="col" class="right">{n}</th>)}</tr></thead>
    <tbody>{of.items.map((i) => <tr key={i.cluster}><th scope="row"><ClusterLink name={i.cluster} /></th>
      {names.map((n) => <td key={n} class="right">{n === i.cluster ? <span class="muted">{i.services}</span> : i.with[n] ?? 0}</td>)}</tr>)}</tbody>
  </table></Scroll></details>;
}
