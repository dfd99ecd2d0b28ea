// The search from everywhere: what the page knows itself, and what the agent finds.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get } from "./api";
import { kinds, linkTo } from "./kinds";
import type { Kind, List, Listed } from "./list";
import { link } from "./route";
import { clusters, codes, conflicts } from "./store";

interface Hit { kind: string; text: string; more?: string; to: string }

const each = 8; // of one kind

function local(text: string): Hit[] {
  const t = text.toLowerCase();
  const hits: Hit[] = [];
  if (/^[0-9a-f:]*[:.][0-9a-f:.]+$/i.test(text)) hits.push({ kind: "Address", text: `Owner of ${text}`, to: link(["addresses", text]) });
  if (/^\d{1,8}$/.test(text)) hits.push({ kind: "Identity", text: `Identity ${text}`, to: link(["identities", text]) });
  const some = <T,>(all: Iterable<T>, matches: (x: T) => boolean, hit: (x: T) => Hit) => {
    let n = 0;
    for (const x of all) if (matches(x)) { if (n++ === each) break; hits.push(hit(x)); }
  };
  some(clusters.value.values(), (c) => c.name.toLowerCase().includes(t), (c) => ({ kind: "Cluster", text: c.name, more: c.state, to: link(["clusters", c.name]) }));
  some(codes.value.values(), (c) => `${c.code} ${c.title}`.toLowerCase().includes(t), (c) => ({ kind: "Code", text: c.code, more: c.title, to: link(["codes", c.code]) }));
  some(conflicts.value.values(), (c) => c.subject.toLowerCase().includes(t), (c) => ({ kind: "Conflict", text: c.subject, more: c.kind, to: link(["conflicts"], { contains: c.subject }) }));
  return hits;
}

async function remote(text: string, signal: AbortSignal): Promise<Hit[]> {
  const ask = async (k: Kind<Listed>) =>
    (await get<List<Listed>>(`v1/${k.resource}?${new URLSearchParams({ contains: text, limit: String(each) })}`, signal)).value.items
      .map((x): Hit => ({ kind: k.singular, text: k.key(x), more: k.found?.(x) ?? "", to: linkTo(k.resource, k.key(x))! }));
  return (await Promise.all(kinds.filter((k) => k.found).map(ask))).flat();
}

/** The dialog, which comes each time that the number of askings grows. */
export function Search({ asked: askings }: { asked: { value: number } }) {
  const dialog = useRef<HTMLDialogElement>(null), list = useRef<HTMLUListElement>(null);
  const text = useSignal(""), found = useSignal<Hit[]>([]), state = useSignal("");
  useEffect(() => {
    const d = dialog.current;
    if (!d || d.open || !askings.value) return;
    d.showModal();
    d.querySelector("input")?.select();
  }, [askings.value]);
  useEffect(() => {
    const asked = text.value.trim();
    found.value = [];
    state.value = "";
    if (!asked) return;
    const abort = new AbortController();
    state.value = "Searching…";
    const timer = setTimeout(() => {
      remote(asked, abort.signal).then((hits) => { found.value = hits; state.value = ""; }, (e) => { if (!abort.signal.aborted) state.value = e instanceof Error ? e.message : String(e); });
    }, 150);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [text.value]);
  const asked = text.value.trim();
  const hits = asked ? [...local(asked), ...found.value] : [];
  const close = () => dialog.current?.close();
  // What had the focus before gets it back, and would take the rest of the key that was pressed: the view takes it next.
  const left = () => {
    close();
    (document.activeElement as HTMLElement | null)?.blur();
  };
  const move = (e: KeyboardEvent) => {
    if (e.key === "Escape") { // before the field takes it to be emptied
      e.preventDefault();
      close();
    }
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    e.preventDefault();
    const links = [...(list.current?.querySelectorAll("a") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement) + step;
    if (at < 0) dialog.current?.querySelector("input")?.focus(); else links[Math.min(at, links.length - 1)]?.focus();
  };
  return <dialog ref={dialog} aria-label="Search" onKeyDown={move} onClick={(e) => { if (e.target === e.currentTarget) close(); }}>
    <form onSubmit={(e) => { e.preventDefault(); const first = hits[0]; if (first) { left(); location.hash = first.to; } }}>
      <label>Search <input type="search" value={text.value} autocomplete="off" spellcheck={false} placeholder="cluster, service, node, pod, address, code" onInput={(e) => { text.value = e.currentTarget.value; }} /></label>
      <button type="button" onClick={close}>Close</button>
    </form>
    <p class="muted" role="status">{asked ? state.value || `${hits.length} found` : "By name, by a part of it, or by address."}</p>
    {hits.length > 0 && <ul ref={list} class="hits">{hits.map((h) => <li key={h.kind + h.to}><a href={h.to} onClick={left}><span class="kind">{h.kind}</span> <span class="name">{h.text}</span> {h.more && <span class="muted">{h.more}</span>}</a></li>)}</ul>}
  </dialog>;
}
