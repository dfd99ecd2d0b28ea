// Keys that work everywhere. One that is a character alone can be turned off (WCAG 2.1.4).
import { signal } from "@preact/signals";

const kept = "mesh-agent-shortcuts";

function read(): boolean {
  try { return localStorage.getItem(kept) !== "off"; } catch { return true; }
}

export const shortcuts = signal(read());

export function setShortcuts(on: boolean): void {
  shortcuts.value = on;
  try { localStorage.setItem(kept, on ? "on" : "off"); } catch { /* it holds until the page is closed */ }
}

export function listen(search: () => void): void {
  addEventListener("keydown", (e) => {
    const at = e.target as HTMLElement | null;
    const typing = at?.matches?.("input, textarea, select, [contenteditable]") ?? false;
    const asked = (e.key === "/" && !typing && shortcuts.value && !e.ctrlKey && !e.metaKey && !e.altKey) || (e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey));
    if (asked) {
      e.preventDefault();
      search();
    }
  });
}
