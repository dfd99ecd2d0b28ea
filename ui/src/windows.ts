// Streams that this window shares with the others of the browser, through the hub of a shared worker; streams of its own
// where there is none, as on some phones.
import type { Asked, News, Told } from "./hub";
import { type Follower, Watch } from "./stream";

declare const WORKER: string; // the file of the worker, beside that of the page

const answers = 15_000; // milliseconds within which a worker answers, on a busy machine too
const silence = 40_000; // milliseconds without a sign of life: one comes each 15 s

/** A stream of a follower, wherever it comes from. */
export interface Source { stop(): void; pause(paused: boolean): void; retry(): void }

/** The worker; undefined until it is asked, null when there is none. */
let port: MessagePort | null | undefined;
const sources = new Map<number, Shared>();
let ids = 0;

export function sourceOf(query: string, to: Follower, token: string): Source {
  if (port === undefined) port = connect();
  return port ? new Shared(query, to, token) : new Watch(query, to, token);
}

function connect(): MessagePort | null {
  if (!("SharedWorker" in globalThis)) return null;
  try {
    const url = new URL(WORKER, import.meta.url).href;
    const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(of: string): unknown } } }).trustedTypes;
    const worker = new SharedWorker((types?.createPolicy("worker", { createScriptURL: () => url }).createScriptURL("") ?? url) as string, { type: "module" });
    worker.onerror = alone;
    worker.port.onmessage = (e: MessageEvent<Told>) => sources.get(e.data.id)?.told(e.data);
    return worker.port;
  } catch {
    return null;
  }
}

/** Goes on with streams of this window, where they are. */
function alone(): void {
  sources.forEach((s) => s.alone());
  sources.clear();
  port = null;
}

class Shared implements Source {
  private id = ++ids;
  private own: Watch | null = null;
  private paused = false;
  private alarm = 0;

  constructor(private query: string, private to: Follower, private token: string) {
    sources.set(this.id, this);
    this.follow();
  }

  private ask(asked: { ask: "follow"; query: string; token: string } | { ask: "leave" | "heard" | "retry" }): void {
    port?.postMessage({ id: this.id, ...asked } satisfies Asked);
  }

  private expect(ms: number, or: () => void): void {
    clearTimeout(this.alarm);
    this.alarm = window.setTimeout(or, ms);
  }

  private follow(): void {
    this.expect(answers, alone);
    this.ask({ ask: "follow", query: this.query, token: this.token });
  }

  told(told: Told): void {
    if (this.paused) return;
    if ("gone" in told) { this.follow(); return; } // this window was frozen: it goes on where it was
    this.ask({ ask: "heard" });
    this.expect(silence, () => this.follow());
    for (const one of told.news) this.take(one);
    this.token = told.token;
  }

  private take(one: News): void {
    if ("changes" in one) this.to.changes(one.changes);
    else if ("reset" in one) this.to.reset();
    else if ("synced" in one) this.to.synced(one.synced);
    else this.to.contact(one.live, one.why);
  }

  alone(): void {
    clearTimeout(this.alarm);
    this.ask({ ask: "leave" });
    this.own = new Watch(this.query, this.to, this.token);
    if (this.paused) this.own.pause(true);
  }

  stop(): void {
    clearTimeout(this.alarm);
    this.ask({ ask: "leave" });
    sources.delete(this.id);
    this.own?.stop();
  }

  pause(paused: boolean): void {
    if (this.own) { this.own.pause(paused); return; }
    if (paused === this.paused) return;
    this.paused = paused;
    if (!paused) { this.follow(); return; }
    clearTimeout(this.alarm);
    this.ask({ ask: "leave" });
    this.to.contact(false, "this page was hidden");
  }

  retry(): void {
    if (this.own) this.own.retry(); else this.ask({ ask: "retry" });
  }
}
