// What views are made of.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Problem } from "./api";
import { link, linkToAddress, navigated, route, setQuery } from "./route";
import { title } from "./problems";
import { safe } from "./safe";
import { announce, codes, heard, live } from "./store";
import { clock, duration } from "./time";
import type { ByResourceInt, Cluster, Explanation, Freshness, Notice } from "./openapi";

type Tone = "good" | "warn" | "bad" | "busy" | "none";
const icons: Record<Tone, string> = { good: "✓", warn: "▲", bad: "✕", busy: "…", none: "·" };

/** A state by its text and an icon; the colour only adds to it. */
export function Badge({ tone, long = false, children }: { tone: Tone; long?: boolean; children: ComponentChildren }) {
  return <span class={`badge ${tone}${long ? " long" : ""}`}><span aria-hidden="true" class="icon">{icons[tone]}</span>{children}</span>;
}

export const Icon = ({ tone }: { tone: Tone }) => <span aria-hidden="true" class="icon">{icons[tone]}</span>;

export function toneOf(c: Cluster): Tone {
  if (c.state === "failed" || c.trouble?.kind === "lost") return "bad";
  if (c.state === "connecting" && c.failures > 0) return "warn"; // it was tried, and failed
  if (c.state === "connecting" || c.state === "syncing" || c.state === "removing") return "busy";
  if (c.freshness.worst.state === "syncing" && (c.trouble?.kind ?? "syncing") === "syncing") return "busy"; // a part of it is still copied
  if (c.trouble || (c.policy && c.policy.state !== "keep") || c.state !== "ready") return "warn";
  return "good";
}

/** A key family, by its name in the objects that have a value for each. */
export type Resource = keyof ByResourceInt;

/** The key families of a cluster, in the order in which the agent names them. */
export const resourcesOf = (c: Cluster) => Object.keys(c.counts) as Resource[];

/** The worst freshness of a cluster, with the time that is longest ago: the stream gives the times by resource alone. */
export function worstOf(c: Cluster): Freshness {
  const { worst } = c.freshness;
  if (worst.state === "synced") return worst;
  const of = resourcesOf(c).map((r) => c.freshness[r]).filter((f) => !f.notRead && f.state === worst.state);
  const times = of.flatMap((f) => (f.asOf ? [f.asOf] : []));
  const read = of.reduce((n, f) => n + (f.read ?? 0), 0), total = of.reduce((n, f) => n + (f.total ?? 0), 0);
  return { ...worst, read, total, asOf: times.sort((a, b) => Date.parse(a) - Date.parse(b))[0] ?? null };
}

/** The text of a cluster's state: its trouble says more than ready does. */
export const stateOf = (c: Cluster) => (c.trouble && c.trouble.kind !== c.state ? `${c.state}, ${c.trouble.kind}` : c.state);

export const toneOfSeverity = (severity: string | undefined): Tone => (severity === "error" ? "bad" : severity === "warning" ? "warn" : "none");

/** How long ago a time was, in the agent's time; it grows each second. */
export function Ago({ at }: { at: string | number | null | undefined }) {
  if (!at) return <>never</>;
  const ms = typeof at === "number" ? at : Date.parse(at);
  const s = (clock.value - ms) / 1000;
  return <time dateTime={new Date(ms).toISOString()} title={new Date(ms).toISOString()}>{s < -1 ? `in ${duration(-s)}` : `${duration(s)} ago`}</time>;
}

const times = /\b(since |trying again at |at |until |as of )?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** A message of the agent, with its times as how long ago they are; the time itself is the title. */
export function Said({ text }: { text: string }) {
  const parts = text.split(times); // text, word, time, text, …
  if (parts.length === 1) return <>{text}</>;
  return <>{parts.map((part, i) => {
    if (i % 3 === 0) return part;
    if (i % 3 === 1) return null;
    const word = parts[i - 1];
    if (word === "trying again at ") return <span key={i}>trying again {Date.parse(part!) > clock.value ? <Ago at={part} /> : "now"}</span>;
    return word === "since " && Date.parse(part!) <= clock.value + 1000 ? <span key={i}>for <time dateTime={part} title={part}>{duration((clock.value - Date.parse(part!)) / 1000)}</time></span>
      : <span key={i}>{word === "at " ? "" : word}<Ago at={part} /></span>;
  })}</>;
}

/** Until when a copy is known to be what the cluster has. While the stream is lost nothing is confirmed here any more. */
export function Known({ f }: { f: Freshness | undefined }) {
  if (!f) return <>unknown</>;
  if (f.state === "synced") return live.value ? <Badge tone="good">fresh</Badge> : <Badge tone="warn">as of <Ago at={heard.value} /></Badge>;
  if (f.state === "syncing") return <Badge tone="busy">syncing{f.total ? ` ${f.read ?? 0} of ${f.total}` : ""}</Badge>;
  return <Badge tone={f.asOf ? "warn" : "bad"}>{f.state}{f.asOf ? <>, as of <Ago at={f.asOf} /></> : ", never known"}</Badge>;
}

export function CodeLink({ code }: { code: string }) {
  if (!code) return null;
  return <a class="code" href={link(["codes", code])} title={codes.value.get(code)?.title ?? "what this code means"}>{code}</a>;
}

/** What to do about a code, and its title. */
export function Remedy({ code, remedy }: { code: string; remedy?: string }) {
  const known = codes.value.get(code);
  const text = remedy || known?.remedy;
  return text ? <p class="remedy"><strong>What to do:</strong> {text}</p> : null;
}

/** What will go wrong, or may. */
export function Notices({ of }: { of: Notice[] }) {
  return <>{of.map((n) => <div key={n.code + n.message} class="note warn"><p><Said text={n.message} /> <CodeLink code={n.code} /></p><Remedy code={n.code} remedy={n.remedy} /></div>)}</>;
}

export const ClusterLink = ({ name }: { name: string }) => (name ? <a href={link(["clusters", name])}>{name}</a> : null);
export const ServiceLink = ({ namespace, name }: { namespace: string; name: string }) => <a href={link(["services", namespace, name])}>{namespace}/{name}</a>;
export const AddressLink = ({ ip }: { ip: string }) => (ip ? <a href={linkToAddress(ip)}>{ip}</a> : null);

export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return <dl class="facts">{of.filter(([, v]) => v !== "" && v !== null && v !== undefined).map(([name, v]) => <div key={name}><dt>{name}</dt><dd>{v}</dd></div>)}</dl>;
}

export function Labels({ of }: { of: Record<string, string> }) {
  const all = Object.entries(of).sort(([a], [b]) => a.localeCompare(b));
  return all.length ? <ul class="labels">{all.map(([k, v]) => <li key={k}>{v ? `${k}=${v}` : k}</li>)}</ul> : <>none</>;
}

/** The heading of a view, which has the focus when the view comes. */
export function Title({ children, text }: { children?: ComponentChildren; text: string }) {
  const h = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    title.value = safe(text.slice(0, 80));
    if (navigated.value) h.current?.focus();
  }, [text]);
  return <div class="title"><h1 ref={h} tabIndex={-1}>{text}</h1>{children}</div>;
}

/** A table that can be moved sideways where it is too wide, also from the keyboard. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return <div class="scroll" role="region" aria-label={label} tabIndex={0}>{children}</div>;
}

/** A field of the query of the address. */
export function Filter({ name, label, hint, options, none = "all", wait = 0 }: { name: string; label: string; hint?: string; options?: string[]; none?: string; wait?: number }) {
  const value = route.value.query.get(name) ?? "";
  const timer = useRef(0);
  const typed = useSignal<string | null>(null); // what is not in the address yet
  const set = (v: string) => {
    typed.value = v;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => { typed.value = null; setQuery({ [name]: v, cursor: "" }); }, wait);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  if (options) {
    return <label class="filter">{label}<select value={value} onChange={(e) => setQuery({ [name]: e.currentTarget.value, cursor: "" })}>
      <option value="">{none}</option>{options.map((o) => <option key={o} value={o}>{o}</option>)}</select></label>;
  }
  return <label class="filter">{label}<input type="search" value={typed.value ?? value} placeholder={hint ?? ""} autocomplete="off" spellcheck={false}
    onInput={(e) => set(e.currentTarget.value)} /></label>;
}

/** The first of many rows, and a button for more of them. */
export function useSome<T>(all: T[], step = 200): [T[], ComponentChildren] {
  const most = useSignal(step);
  const more = all.length - most.value;
  return [all.slice(0, most.value), more > 0 ? <p><button type="button" onClick={() => { most.value += step; }}>Show {Math.min(step, more)} of {more} more</button></p> : null];
}

/** All rows, some at a time, so that the page answers in between; the same key goes on, another one begins again. */
export function useGradually<T>(all: T[], key: string, step = 25): T[] {
  const state = useSignal({ key, n: step });
  const n = state.value.key === key ? state.value.n : step;
  useEffect(() => {
    if (state.peek().key !== key) state.value = { key, n: step };
    if (n >= all.length) return;
    const timer = setTimeout(() => { state.value = { key, n: n + step }; });
    return () => clearTimeout(timer);
  }, [n, key, all.length]);
  return n < all.length ? all.slice(0, n) : all;
}

export function Failed({ problem, again }: { problem: unknown; again?: () => void }) {
  const text = problem instanceof Error ? problem.message : String(problem);
  const missing = problem instanceof Problem && problem.status === 404;
  return <div class={missing ? "note" : "note bad"} role="status"><p>{text}</p>{again && !missing && <button type="button" onClick={again}>Try again</button>}</div>;
}

export const Waiting = () => <p class="muted" role="status">Reading…</p>;

/** Why something is as it is, step by step. */
export function Why({ of }: { of: Explanation }) {
  return <section><h2>Why</h2>
    <p>{of.verdict.text} <CodeLink code={of.verdict.code} /></p>
    <Remedy code={of.verdict.code} />
    {of.steps.length ? <details><summary>{of.steps.length === 1 ? "1 step" : `${of.steps.length} steps`} that led to it</summary>
      <ol>{of.steps.map((s, i) => <li key={i}>{s.cluster && <><ClusterLink name={s.cluster} />: </>}{s.text} <CodeLink code={s.code} />
        {s.asOf && <span class="muted"> known as of <Ago at={s.asOf} /></span>}
        {s.keys.length ? <ul>{s.keys.map((k) => <li key={k.key}><code>{k.key}</code> <span class="muted">revision {k.revision}</span>{k.refused && ` refused: ${k.refused}`}</li>)}</ul> : null}
      </li>)}</ol></details> : null}
  </section>;
}

/** Buttons that copy a finding, as text and as a link to where it is shown. */
export function Copy({ text, to }: { text: () => string; to: string }) {
  const done = useSignal("");
  const copy = async (what: string, value: string) => {
    done.value = (await intoClipboard(value)) ? `The ${what} is copied.` : "The browser does not let this page copy.";
    announce(done.value);
    setTimeout(() => { done.value = ""; }, 3000);
  };
  const address = () => new URL(to, location.href.split("#")[0]).href;
  return <span class="copy"><button type="button" onClick={() => void copy("text", `${text()}\n${address()}`)}>Copy text</button>{" "}
    <button type="button" onClick={() => void copy("link", address())}>Copy link</button> <span class="muted">{done.value}</span></span>;
}

async function intoClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // no TLS, or no permission: a selection can be copied by who has just pressed a button
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
