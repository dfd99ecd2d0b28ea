// What every view shares: the clusters, conflicts, events and health of the agent, fed by one stream,
// and its status, which is read again when the stream says that something has changed.
import { batch, signal } from "@preact/signals";
import { get } from "./api";
import type { Change, Follower } from "./stream";
import { now } from "./time";
import type { Cluster, CodeEntry, Codes, Conflict, Event as MeshEvent, Health, Status } from "./openapi";
import { type Source, sourceOf } from "./windows";

type Objects = Map<string, any>;

const key: Record<string, (o: any) => string> = {
  clusters: (o: Cluster) => o.name,
  conflicts: (o: Conflict) => `${o.kind}/${o.subject}`,
  events: (o: MeshEvent) => String(o.id),
  health: (o: Health) => o.name,
};

export const clusters = signal<Map<string, Cluster>>(new Map());
export const conflicts = signal<Map<string, Conflict>>(new Map());
export const events = signal<Map<string, MeshEvent>>(new Map());
export const health = signal<Map<string, Health>>(new Map());
const shared: Record<string, { value: Objects }> = { clusters, conflicts, events, health };

export const status = signal<Status | null>(null);
export const statusRead = signal(0); // when, by the agent's clock
export const statusProblem = signal("");
export const codes = signal<Map<string, CodeEntry>>(new Map());

/** Whether the stream is followed now; why not; when it was heard last, by the agent's clock. */
export const live = signal(false);
export const lostWhy = signal("");
export const heard = signal(0);
export const known = signal(false); // the first state is complete

export const said = signal(""); // for screen readers
export const announce = (text: string) => { said.value = text; };

class Store implements Follower {
  private coming: Record<string, Objects> = {};
  private queue: Change[] = [];
  private due = false;

  constructor() { this.reset(); }

  reset(): void {
    this.queue = [];
    for (const name of Object.keys(shared)) this.coming[name] = new Map();
    readStatusSoon();
  }

  changes(all: Change[]): void {
    this.queue.push(...all);
    if (!this.due) {
      this.due = true;
      setTimeout(() => { this.due = false; this.apply(); }, 50); // a frame or two: what comes together is shown together
    }
  }

  synced(resource: string): void {
    this.apply();
    const state = this.coming[resource], to = shared[resource];
    if (state && to) {
      delete this.coming[resource];
      to.value = state;
    }
    if (Object.keys(this.coming).length === 0) known.value = true;
  }

  contact(now_: boolean, why: string): void {
    batch(() => {
      if (now_) heard.value = now();
      if (now_ !== live.value) {
        announce(now_ ? "Live again." : `Not live: ${why}.`);
        if (now_) readStatusSoon();
      }
      live.value = now_;
      lostWhy.value = why;
    });
    if (now_) readCodes();
  }

  private apply(): void {
    const changed = new Map<string, Objects>();
    let moved = false;
    for (const { type, resource, object } of this.queue) {
      const to = shared[resource], name = key[resource]?.(object);
      if (!to || name === undefined) continue;
      let into = this.coming[resource] ?? changed.get(resource);
      if (!into) changed.set(resource, (into = new Map(to.value)));
      if (resource === "clusters") moved ||= into.get(name)?.state !== object.state || type === "delete";
      if (type === "delete") into.delete(name); else into.set(name, object);
      if (resource === "clusters" && !this.coming[resource]) this.saw(to.value.get(name), type === "delete" ? undefined : object);
    }
    this.queue = [];
    batch(() => { for (const [resource, objects] of changed) shared[resource]!.value = objects; });
    if (changed.has("clusters") || changed.has("conflicts")) readStatusSoon(moved ? "states" : "numbers");
  }

  private saw(before: Cluster | undefined, c: Cluster | undefined): void {
    if (before?.state !== c?.state) announce(`Cluster ${(c ?? before)?.name}: ${c?.state ?? "removed"}.`);
  }
}

let reading = false, again: keyof typeof apart | "" = "", readAt = 0, planned = 0, plannedAt = 0;
// Milliseconds between two reads of the status, however much changes: when clusters came to another state, and when
// only numbers changed. The status of a large mesh is large.
const apart = { states: 2000, numbers: 6000 };

/** Reads the status again, once for all changes that come close together. */
export function readStatusSoon(after: keyof typeof apart = "states"): void {
  const due = Math.max(Date.now(), readAt + apart[after]);
  if (reading) { again = again === "states" ? again : after; return; }
  if (planned && due >= plannedAt) return;
  clearTimeout(planned);
  plannedAt = due;
  planned = window.setTimeout(() => { planned = 0; void readStatus(); }, due - Date.now());
}

export async function readStatus(): Promise<void> {
  reading = true;
  try {
    const { value } = await get<Status>("v1/status");
    batch(() => { status.value = value; statusRead.value = now(); statusProblem.value = ""; });
  } catch (e) {
    statusProblem.value = e instanceof Error ? e.message : String(e);
  }
  reading = false;
  readAt = Date.now();
  if (again) { const after = again; again = ""; readStatusSoon(after); }
}

let askedCodes = 0;

/** Reads what the codes mean, until it has succeeded once. */
function readCodes(): void {
  if (codes.value.size || Date.now() < askedCodes + 10_000) return;
  askedCodes = Date.now();
  void get<Codes>("v1/codes").then(({ value }) => { codes.value = new Map(value.items.map((c) => [c.code, c])); }, () => {});
}

/** Why the streams of the present view are not followed; empty while they are. */
export const viewLostWhy = signal("");

/** One stream for all of a window that follow the same. */
class Shared implements Follower {
  readonly members = new Set<Follower>();
  readonly watch: Source;
  why = "";

  constructor(query: string, token: string) { this.watch = sourceOf(query, this, token); }

  changes(all: Change[]): void { this.members.forEach((m) => m.changes(all)); }
  reset(): void { this.members.forEach((m) => m.reset()); }
  synced(resource: string): void { this.members.forEach((m) => m.synced(resource)); }

  contact(now_: boolean, why: string): void {
    this.why = now_ ? "" : why;
    this.members.forEach((m) => m.contact(now_, why));
    noteLost();
  }
}

const watches = new Map<string, Shared>();
const store = new Store();

function noteLost(): void {
  viewLostWhy.value = [...watches.values()].find((w) => w.why && !w.members.has(store))?.why ?? "";
}

/** Follows a watch, which is let go while the page is hidden. One who joins others gets only what comes from now on. */
export function follow(query: string, to: Follower, token = ""): () => void {
  const key = `${query}\n${token}`;
  let shared = watches.get(key);
  if (!shared) watches.set(key, (shared = new Shared(query, token)));
  const of = shared;
  of.members.add(to);
  return () => {
    of.members.delete(to);
    if (of.members.size) return;
    of.watch.stop();
    if (watches.get(key) === of) watches.delete(key);
    noteLost();
  };
}

const hiddenFor = 60_000; // milliseconds until nobody looks

export function start(): void {
  follow("resource=clusters&resource=conflicts&resource=events&resource=health", store);
  let timer = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = window.setTimeout(() => watches.forEach((w) => w.watch.pause(true)), hiddenFor);
    else watches.forEach((w) => w.watch.pause(false));
  });
  addEventListener("pagehide", () => watches.forEach((w) => w.watch.pause(true)));
  addEventListener("pageshow", () => watches.forEach((w) => w.watch.pause(false)));
  addEventListener("online", () => watches.forEach((w) => w.watch.retry()));
}
