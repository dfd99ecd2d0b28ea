// Reads of one view: at its opening, and again when the stream says that something has changed.
import { effect, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get } from "./api";
import { clusters, follow } from "./store";
import { now } from "./time";

export interface Read<T> { value: T | null; at: number; problem: unknown; again: () => void }

/**
 * Reads a path of the API, and again after each change that a watch with the given query brings, or
 * of a cluster's state; an empty query follows only these.
 */
export function useRead<T>(path: string, watch: string, withClusters = true): Read<T> {
  const state = useSignal<{ path: string; value: T | null; at: number; problem: unknown }>({ path, value: null, at: 0, problem: null });
  const again = useRef<() => void>(() => {});
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0, last = 0, running = false, dirty = false, missed = true;
    const read = async () => {
      timer = 0;
      running = true;
      try {
        const { value } = await get<T>(path, abort.signal);
        state.value = { path, value, at: now(), problem: null };
      } catch (e) {
        if (abort.signal.aborted) return;
        state.value = { path, value: state.peek().path === path && !(e as { status?: number }).status ? state.peek().value : null, at: state.peek().at, problem: e };
      }
      running = false;
      last = Date.now();
      if (dirty) { dirty = false; soon(); }
    };
    const soon = () => {
      if (timer) return;
      if (running) { dirty = true; return; }
      timer = window.setTimeout(() => void read(), Math.max(100, last + 1000 - Date.now()));
    };
    again.current = () => { clearTimeout(timer); timer = 0; if (running) dirty = true; else void read(); };
    void read();
    const stop = watch ? follow(watch, {
      changes: soon, contact() {},
      // What was deleted before the state came is not in it.
      reset() { missed = true; }, synced() { if (missed) soon(); missed = false; },
    }) : () => {};
    const states = () => [...clusters.value.values()].map((c) => `${c.name} ${c.state} ${c.freshness.worst.state} ${c.policy?.state}`).join("\n");
    let before = "";
    const unfollow = withClusters ? effect(() => {
      const present = states();
      if (before && present !== before) soon();
      before = present;
    }) : () => {};
    return () => { abort.abort(); clearTimeout(timer); stop(); unfollow(); };
  }, [path, watch]);
  const s = state.value;
  return { value: s.path === path ? s.value : null, at: s.at, problem: s.path === path ? s.problem : null, again: () => again.current() };
}
