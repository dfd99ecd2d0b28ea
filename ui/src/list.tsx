// A list of the API: filtered and paged by the agent, one page in the document. What of the page
// changes is shown where it is; what is new is announced, so that rows do not move while one reads.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { get } from "./api";
import { Ago, ClusterLink, Failed, Filter, Scroll, Title, Waiting } from "./parts";
import { link, route } from "./route";
import { announce, follow } from "./store";
import { now } from "./time";
import type { ListNode, paths } from "./openapi";

interface Answers<A> { get: { responses: { 200: { content: { "application/json": A } } } } }

/** The lists of the API, by what follows /v1/ in their paths, with what each has. */
type Lists = {
  [P in keyof paths as P extends `/v1/${infer R}` ? (paths[P] extends Answers<{ items: unknown[]; next: string }> ? R : never) : never]: paths[P] extends Answers<{ items: (infer T)[] }> ? T : never
};
export type Listed = keyof Lists;
export type Item<R extends Listed> = Lists[R];
/** A page of a list. */
export type List<R extends Listed> = Omit<ListNode, "items"> & { items: Item<R>[] };

/** A kind of objects, as the page shows it: a list of the API, each object of it, and where it is mentioned. kinds.ts has all. */
export interface Kind<R extends Listed> {
  resource: R;
  path: string; // of the view: the first part of its address
  title: string; // of the list, also in the navigation
  noun: string; // what several are called in a text
  singular: string; // what one is called in the search
  filters: { name: string; label: string; hint?: string }[]; // the agent's
  columns: { title: string; right?: boolean; cell(item: Item<R>): ComponentChildren }[];
  /** The name of an object, as the agent has it. */
  key(item: Item<R>): string;
  /** The view of one object, and how many parts the address has for it: those of its name, unless linkTo says otherwise. */
  parts: number;
  view(...parts: string[]): VNode;
  linkTo?(name: string): string;
  /** What the search shows of an object beside its name; without it, there is no search for them. */
  found?(item: Item<R>): string;
}

const page = 100;

interface Rows<R extends Listed> { items: Item<R>[]; next: string; at: number; doubt: [string, string | null][]; gone: Set<string>; changed: Set<string>; fresh: number; unknown: boolean }

export function ListView<R extends Listed>({ of }: { of: Kind<R> }) {
  const { query } = route.value;
  const rows = useSignal<Rows<R> | null>(null);
  const problem = useSignal<unknown>(null);
  const round = useSignal(0);
  const filters = new URLSearchParams();
  for (const { name } of of.filters) {
    const value = query.get(name);
    if (value) filters.set(name, value);
  }
  const cursor = query.get("cursor") ?? "";
  useEffect(() => {
    const abort = new AbortController();
    let unfollow = () => {};
    const ask = new URLSearchParams(filters);
    ask.set("limit", String(page));
    if (cursor) ask.set("cursor", cursor);
    get<List<R>>(`v1/${of.resource}?${ask}`, abort.signal).then(({ value, token }) => {
      if (abort.signal.aborted) return;
      problem.value = null;
      const doubt = Object.entries(value.freshness ?? {}).filter(([, f]) => f.state !== "synced").map(([c, f]) => [c, f.asOf] as [string, string | null]);
      rows.value = { items: value.items, next: value.next, at: now(), doubt, gone: new Set(), changed: new Set(), fresh: 0, unknown: false };
      announce(`${value.items.length} ${of.noun}${value.next ? ", and more pages" : ""}.`);
      const watch = new URLSearchParams(filters);
      watch.set("resource", of.resource);
      let state: Set<string> | null = token ? null : new Set(); // the rows of this page in the state that is coming
      let missed = false; // the changes since the page was read are not all known
      unfollow = follow(watch.toString(), {
        changes(all) {
          const r = rows.peek();
          if (!r) return;
          const at = new Map(r.items.map((item, i) => [of.key(item), i]));
          const next = { ...r, items: [...r.items], gone: new Set(r.gone), changed: new Set(r.changed) };
          for (const { type, object } of all) {
            const key = of.key(object), i = at.get(key);
            if (i === undefined) {
              if (type === "upsert" && !state) next.fresh++;
              if (state && !cursor && !value.next) missed = true; // the page had everything
              continue;
            }
            if (type === "delete") { next.gone.add(key); continue; }
            next.gone.delete(key);
            state?.add(key);
            if (state && JSON.stringify(next.items[i]) === JSON.stringify(object)) continue;
            next.changed.add(key);
            next.items[i] = object;
          }
          rows.value = next;
        },
        // After a token that is known no longer the page is read again. What has no token begins with the state each time.
        reset() { if (token) round.value++; else { state = new Set(); missed = true; } },
        synced() {
          const r = rows.peek(), all = state;
          state = null;
          if (!r || !all) return;
          const gone = new Set(r.items.map(of.key).filter((key) => !all.has(key)));
          rows.value = { ...r, gone, unknown: r.unknown || missed };
        },
        contact() {},
      }, token);
    }, (e) => { if (!abort.signal.aborted) problem.value = e; });
    return () => { abort.abort(); unfollow(); };
  }, [of, filters.toString(), cursor, round.value]);
  const again = () => { round.value++; };
  const r = rows.value;
  return <>
    <Title text={of.title} />
    <div class="filters" role="search" aria-label={`Filter ${of.noun}`}>{of.filters.map((f) => <Filter key={f.name} {...f} wait={250} />)}</div>
    {problem.value ? <Failed problem={problem.value} again={again} /> : r === null ? <Waiting /> : <>
      {r.doubt.length > 0 && <p class="note warn">The data of {r.doubt.slice(0, 5).map(([c, asOf], i) => <span key={c}>{i > 0 && ", "}<ClusterLink name={c} /> ({asOf ? <>as of <Ago at={asOf} /></> : "never known"})</span>)}
        {r.doubt.length > 5 && ` and ${r.doubt.length - 5} more clusters`} may differ from this list.</p>}
      <Scroll label={of.title}>
        <table>
          <caption class="unseen">{of.title}</caption>
          <thead><tr>{of.columns.map((c) => <th key={c.title} scope="col" class={c.right ? "right" : undefined}>{c.title}</th>)}</tr></thead>
          <tbody>{r.items.map((item) => {
            const key = of.key(item), gone = r.gone.has(key);
            return <Row key={key} of={of} item={item} gone={gone} changed={r.changed.has(key)} />;
          })}</tbody>
        </table>
      </Scroll>
      {r.items.length === 0 && <p>No {of.noun} {filters.size ? "pass the filters." : "are known."}</p>}
      <p class="pager">
        <span class="muted">{r.items.length} {of.noun}, read <Ago at={r.at} />{r.unknown ? "; others may have changed since" : r.fresh > 0 && `; ${r.fresh} changes of others since`}</span>{" "}
        {(r.unknown || r.fresh > 0) && <button type="button" onClick={again}>Read again</button>}{" "}
        {cursor && <a href={link(route.value.path, Object.fromEntries(filters))}>First page</a>}{" "}
        {r.next && <a rel="next" href={link(route.value.path, { ...Object.fromEntries(filters), cursor: r.next })}>Next page</a>}
      </p>
    </>}
  </>;
}

/** A row, which is compared only when its object changed: the others of a page are many. */
function Row<R extends Listed>({ of, item, gone, changed }: { of: Kind<R>; item: Item<R>; gone: boolean; changed: boolean }) {
  return useMemo(() => <tr class={gone ? "gone" : changed ? "changed" : undefined}>
    {of.columns.map((c, i) => <td key={c.title} class={c.right ? "right" : undefined}>{c.cell(item)}{i === 0 && gone && <span class="muted"> (gone)</span>}</td>)}
  </tr>, [of, item, gone, changed]);
}
