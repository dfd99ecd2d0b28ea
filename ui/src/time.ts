import { signal } from "@preact/signals";
import { ahead } from "./api";

/** The agent's time, in milliseconds, moved on each second. */
export const clock = signal(Date.now());
export const now = () => Date.now() + ahead;

export function startClock(): void {
  setInterval(() => { clock.value = now(); }, 1000);
}

/** A length of time in at most two units. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 ? ` ${s % 60} s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h${Math.floor((s % 3600) / 60) ? ` ${Math.floor((s % 3600) / 60)} min` : ""}`;
  return `${Math.floor(s / 86400)} d${Math.floor((s % 86400) / 3600) ? ` ${Math.floor((s % 86400) / 3600)} h` : ""}`;
}

/** Seconds of which parts count, such as of a lag. */
export function precise(seconds: number): string {
  return seconds < 0.001 ? `${Math.round(seconds * 1e6)} µs` : seconds < 1 ? `${Number((seconds * 1000).toPrecision(2))} ms` : `${Number(seconds.toPrecision(2))} s`;
}
