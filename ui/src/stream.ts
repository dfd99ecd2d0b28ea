// The agent's resumable stream of changes (/v1/watch), read without EventSource, so that its signs of
// life are seen, and what it answers when it refuses.
import { open, Problem } from "./api";

export interface Change { type: "upsert" | "delete"; resource: string; object: any; revision: number }

export interface Follower {
  /** What has come since the last call, in its order. */
  changes(all: Change[]): void;
  /** Everything that is known has to be forgotten: the state follows. */
  reset(): void;
  /** The state of a resource is complete. */
  synced(resource: string): void;
  /** Something was heard, or nothing is any more. */
  contact(live: boolean, why: string): void;
}

const silence = 22_000; // milliseconds without a sign of life, of which there is one each 15 s
// While much comes it is read in larger pieces: each piece that a browser hands over costs more than what is in it. A few
// pieces are read at once, so that what seldom happens is shown at once.
const burst = 10; // pieces
const each = 1000; // milliseconds for which a further piece is put together
const full = 30_000; // bytes of a piece after which there may be more
const waits = [300, 1000, 2000, 4000, 8000];

/** Follows the stream until stop, and goes on after the last event wherever it is cut off. */
export class Watch {
  private ended = false;
  private paused = false;
  private abort = new AbortController();
  private wake: () => void = () => {};
  private failures = 0;
  settled = false; // a state has come

  /** The token is where to go on. */
  constructor(private query: string, private to: Follower, public token = "") { void this.run(); }

  stop(): void {
    this.ended = true;
    this.abort.abort();
    this.wake();
  }

  /** Lets go of the connection while nobody looks, and takes it up again. */
  pause(paused: boolean): void {
    if (paused === this.paused) return;
    this.paused = paused;
    if (paused) this.abort.abort(); else this.retry();
  }

  retry(): void {
    this.failures = 0;
    this.wake();
  }

  private async run(): Promise<void> {
    while (!this.ended) {
      let why = "the stream has ended", wait = 0;
      if (!this.paused) {
        try {
          why = await this.follow();
        } catch (e) {
          if (this.ended) return;
          why = this.paused ? "this page was hidden" : e instanceof Error ? e.message : String(e);
          if (e instanceof Problem) wait = e.retryAfter * 1000;
        }
        this.to.contact(false, why);
      }
      if (this.ended) return;
      wait = Math.max(wait, waits[Math.min(this.failures++, waits.length - 1)] ?? 0);
      await new Promise<void>((go) => {
        this.wake = go;
        if (!this.paused) setTimeout(go, wait * (0.8 + 0.4 * Math.random()));
      });
    }
  }

  private async follow(): Promise<string> {
    this.abort = new AbortController();
    let stalled = false;
    let alarm = 0;
    const heard = () => {
      clearTimeout(alarm);
      alarm = setTimeout(() => { stalled = true; this.abort.abort(); }, silence);
    };
    heard();
    try {
      const since = this.token ? `&since=${encodeURIComponent(this.token)}` : "";
      const response = await open(`v1/watch?${this.query}${since}`, this.abort.signal);
      if (!response.body) return "the stream has no body";
      this.to.contact(true, "");
      const reader = response.body.getReader(), decoder = new TextDecoder();
      let rest = "", left = burst, last = performance.now();
      this.settled = this.token !== "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return "the agent has ended the stream";
        heard();
        this.failures = 0;
        const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
        rest = frames.pop() ?? "";
        const said = this.take(frames);
        if (said) return said;
        this.to.contact(true, "");
        const now = performance.now();
        left = Math.min(burst, left + (now - last) / each) - 1;
        last = now;
        if (left < 0 && this.settled && value.length < full) await new Promise((go) => setTimeout(go, each));
      }
    } catch (e) {
      if (stalled) return "no data for 22 seconds";
      throw e;
    } finally {
      clearTimeout(alarm);
    }
  }

  /** Reads events, and answers with why there are no more. */
  private take(frames: string[]): string {
    let changes: Change[] = [];
    const flush = () => { if (changes.length) this.to.changes(changes); changes = []; };
    for (const frame of frames) {
      let type = "", data = "", id = "";
      for (const line of frame.split("\n")) {
        if (line.startsWith("event: ")) type = line.slice(7);
        else if (line.startsWith("data: ")) data = line.slice(6);
        else if (line.startsWith("id: ")) id = line.slice(4);
      }
      if (type === "upsert" || type === "delete") {
        changes.push({ type, ...(JSON.parse(data) as Omit<Change, "type">) });
      } else if (type === "reset") {
        flush();
        this.settled = false;
        this.to.reset();
      } else if (type === "synced") {
        flush();
        this.settled = true;
        this.to.synced((JSON.parse(data) as { resource: string }).resource);
      } else if (type === "disconnect") {
        flush();
        return (JSON.parse(data) as { reason: string }).reason;
      }
      if (id) this.token = id;
    }
    flush();
    return "";
  }
}
