// The streams that all windows of a browser share: a browser opens six connections to an agent, for all of its windows.
// The hub runs in a shared worker (worker.ts), which lives while a window is connected to it.
//
// Each follower begins with a stream of its own, which brings it the state, or what it missed. Once two streams of one query
// are at known positions, the one that is behind goes on for the followers of both, and the other one ends: nobody misses
// a change, and what a follower has already is not sent to it again.
import { type Change, type Follower, Watch } from "./stream";

/** What a window says. */
export type Asked = { id: number } & ({ ask: "follow"; query: string; token: string } | { ask: "leave" | "heard" | "retry" });

/** A part of what a stream brought. */
export type News = { changes: Change[] } | { reset: true } | { synced: string } | { live: boolean; why: string };

/** What a window is told: what came, in its order, and where to go on after it; or that it is no follower any more. */
export type Told = { id: number } & ({ news: News[]; token: string } | { gone: true });

const most = 4; // streams of different queries; one more that is about to join one of them, and the last connection is for reads
const apart = 500; // milliseconds between two messages to a window while much changes
const patience = 20_000; // milliseconds without an answer of a window, which is frozen or gone

/** A part of a window that follows a query. */
class Member {
  private news: News[] = [];
  private latest = new Map<string, Change>(); // after the news: of each object the last change
  private live: News | null = null;
  private token: string;
  private sent = 0; // when, while it was not answered
  private last = 0;
  private timer = 0;

  /** What of a stream is not after this position, the member has. */
  from = 0;

  constructor(readonly port: MessagePort, readonly id: number, token: string) { this.token = token; }

  add(one: News, token: string, now: boolean): void {
    this.token = token;
    if ("changes" in one) {
      for (const c of one.changes) {
        const key = keyOf(c);
        this.latest.delete(key);
        this.latest.set(key, c);
      }
    } else if ("live" in one) {
      this.live = one;
    } else {
      this.flush();
      this.news.push(one);
    }
    if (now) this.last = 0;
    this.plan();
  }

  /** Puts the changes and the contact, in this order, after the rest of the news. */
  private flush(): void {
    if (this.latest.size) this.news.push({ changes: [...this.latest.values()] });
    if (this.live) this.news.push(this.live);
    this.latest.clear();
    this.live = null;
  }

  /** A window that does not answer is told nothing more: what it has not taken yet is kept for it. */
  private plan(): void {
    if (this.sent) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), Math.max(0, this.last + apart - Date.now()));
  }

  tell(): void {
    this.flush();
    this.sent = this.last = Date.now();
    this.port.postMessage({ id: this.id, news: this.news, token: this.token } satisfies Told);
    this.news = [];
  }

  heard(): void {
    this.sent = 0;
    if (this.news.length || this.latest.size || this.live) this.plan();
  }

  get lost(): boolean { return this.sent > 0 && Date.now() - this.sent > patience; }

  end(): void { clearTimeout(this.timer); }
}

/** What tells the object of a change from others, or more than that: one may have two keys, but never two one key. */
function keyOf({ resource, object: o }: Change): string {
  return JSON.stringify([resource, o.id, o.kind, o.cluster, o.namespace, o.name, o.prefix, o.subject]);
}

/** A position of a process of the agent. */
function positionOf(token: string): { of: string; at: number } | null {
  const [, of, at] = /^(.+)-(\d+)$/.exec(token) ?? [];
  return of && at ? { of, at: Number(at) } : null;
}

class Stream implements Follower {
  readonly members = new Set<Member>();
  watch: Watch | null = null; // until there is a connection for it
  settled = false;
  contacted: News = { live: false, why: "" }; // what was heard last

  constructor(private hub: Hub, readonly query: string, private begin: string) {}

  get token(): string { return this.watch?.token ?? this.begin; }

  start(): void { this.watch = new Watch(this.query, this, this.begin); }

  changes(all: Change[]): void {
    this.members.forEach((m) => {
      const news = m.from ? all.filter((c) => c.revision > m.from) : all;
      if (news.length) m.add({ changes: news }, this.token, false);
    });
    this.settle();
  }

  reset(): void {
    this.settled = false;
    this.members.forEach((m) => { m.from = 0; m.add({ reset: true }, this.token, false); });
  }

  synced(resource: string): void { this.members.forEach((m) => m.add({ synced: resource }, this.token, true)); }

  contact(live: boolean, why: string): void {
    const news = (this.contacted = { live, why });
    this.members.forEach((m) => m.add(news, this.token, !live));
    this.settle();
  }

  private settle(): void {
    this.settled = this.watch?.settled ?? false;
    if (this.settled) this.hub.join(this);
  }
}

/** Why a view is not live in a window more than there are connections. */
const full = "other windows of this browser show other views, and use all of its connections to the agent";

export class Hub {
  private streams = new Set<Stream>();
  private ports = new Map<MessagePort, Map<number, Stream>>();

  constructor() { setInterval(() => this.forget(), patience / 4); }

  connect(port: MessagePort): void {
    port.onmessage = (e: MessageEvent<Asked>) => this.asked(port, e.data);
  }

  private asked(port: MessagePort, asked: Asked): void {
    const of = this.ports.get(port)?.get(asked.id), member = of && [...of.members].find((m) => m.port === port && m.id === asked.id);
    if (asked.ask === "follow") {
      this.leave(of, member);
      this.follow(asked.query, new Member(port, asked.id, asked.token), asked.token);
    } else if (!of || !member) {
      if (asked.ask !== "leave") port.postMessage({ id: asked.id, gone: true } satisfies Told);
    } else if (asked.ask === "leave") {
      this.leave(of, member);
    } else if (asked.ask === "heard") {
      member.heard();
    } else {
      of.watch?.retry();
    }
  }

  private follow(query: string, m: Member, token: string): void {
    m.tell(); // it is here
    const has = positionOf(token);
    let s = [...this.streams].find((x) => {
      const at = x.query === query && x.settled && positionOf(x.token);
      return at && at.of === has?.of && at.at <= has.at;
    });
    if (s) {
      m.from = has!.at;
      m.add(s.contacted, token, true);
    } else {
      this.streams.add((s = new Stream(this, query, token)));
    }
    this.put(m, s);
    this.arrange();
  }

  private put(m: Member, s: Stream): void {
    s.members.add(m);
    let all = this.ports.get(m.port);
    if (!all) this.ports.set(m.port, (all = new Map()));
    all.set(m.id, s);
  }

  private leave(of: Stream | undefined, m: Member | undefined): void {
    if (!of || !m) return;
    m.end();
    of.members.delete(m);
    const all = this.ports.get(m.port);
    all?.delete(m.id);
    if (!all?.size) this.ports.delete(m.port);
    if (!of.members.size) this.end(of);
  }

  private end(s: Stream): void {
    s.watch?.stop();
    this.streams.delete(s);
    this.arrange();
  }

  /** Lets one of two streams of the same query go on for both. */
  join(s: Stream): void {
    const at = this.streams.has(s) && positionOf(s.token); // one that has ended may still say what it had read
    for (const other of at ? this.streams : []) {
      const there = other !== s && other.query === s.query && other.settled && positionOf(other.token);
      if (!at || !there || there.of !== at.of) continue;
      const [stays, ends, from] = there.at <= at.at ? [other, s, at.at] : [s, other, there.at];
      for (const m of ends.members) {
        m.from = Math.max(m.from, from);
        this.put(m, stays);
      }
      ends.members.clear();
      this.end(ends);
      return;
    }
  }

  /** Opens what there are connections for. */
  private arrange(): void {
    const running = [...this.streams].filter((s) => s.watch), queries = new Set(running.map((s) => s.query));
    let joining = running.length - queries.size;
    for (const s of this.streams) {
      if (s.watch) continue;
      if (queries.has(s.query)) {
        if (joining++ === 0) s.start();
      } else if (queries.size < most) {
        queries.add(s.query);
        s.start();
      } else {
        s.members.forEach((m) => m.add({ live: false, why: full }, s.token, true));
      }
    }
  }

  private forget(): void {
    for (const s of this.streams) {
      for (const m of s.members) if (m.lost) this.leave(s, m);
    }
  }
}
