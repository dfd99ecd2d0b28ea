// Charts of numbers over time. Each has its numbers as text and as a table, too.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { Scroll } from "./parts";

export interface Points { at: number[]; values: (number | null)[] } // milliseconds, rising; null: nothing was observed

const short = (n: number) => (n >= 1e6 ? `${n / 1e6}M` : n >= 1e4 ? `${n / 1e3}k` : n > 0 && n < 0.001 ? `${Number((n * 1e6).toPrecision(2))}µ` : String(Number(n.toPrecision(4))));

export function Chart({ title, summary, unit, points, bars = false, from0 = bars, show = String }: { title: string; summary: string; unit: string; points: Points; bars?: boolean; from0?: boolean; show?: (n: number) => string }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = () => [points.at.map((t) => t / 1000), points.values] as uPlot.AlignedData;
  useEffect(() => {
    const at = place.current;
    if (!at) return;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => () => style.getPropertyValue(name).trim(); // asked at each drawing: dark mode may come and go
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    const size = () => ({ width: Math.max(200, at.clientWidth), height: 160 });
    const series: uPlot.Series = { label: unit, stroke: color("--accent"), width: 2, fill: bars ? color("--accent") : () => "transparent", points: { show: false }, spanGaps: false };
    const paths = bars ? uPlot.paths.bars?.({ size: [0.8, 40] }) : uPlot.paths.linear?.();
    if (paths) series.paths = paths;
    plot.current = new uPlot({
      ...size(), legend: { show: false }, cursor: { show: false }, series: [{}, series],
      axes: [{ ...axis, values: (_u, at) => at.map((t) => new Date(t * 1000).toISOString().slice(11, (at[1] ?? 0) - (at[0] ?? 0) < 60 ? 19 : 16)) }, { ...axis, size: 60, values: (_u, at) => at.map((n) => (bars ? String(n) : short(n))) }], scales: { y: { range: (_u, min, max) => (max === null || min === null ? [0, 1] : from0 ? [0, max > 0 ? max * 1.05 : 1] : [Math.floor(min * 0.98), Math.max(Math.ceil(max * 1.05), min + 1)]) } },
    }, data(), at);
    const resized = new ResizeObserver(() => plot.current?.setSize(size()));
    resized.observe(at);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => plot.current?.redraw();
    scheme.addEventListener("change", repaint);
    return () => { scheme.removeEventListener("change", repaint); resized.disconnect(); plot.current?.destroy(); plot.current = null; };
  }, []);
  useEffect(() => { plot.current?.setData(data()); }, [points]);
  return <figure class="chart">
    <figcaption><strong>{title}</strong> <span class="muted">{summary}; times are UTC</span></figcaption>
    <div ref={place} role="img" aria-label={`${title}: ${summary}`} />
    <details><summary>As a table</summary><Scroll label={title}><table>
      <thead><tr><th scope="col">Time</th><th scope="col" class="right">{unit}</th></tr></thead>
      <tbody>{points.at.map((t, i) => ({ t, v: points.values[i] ?? null })).filter((p) => !bars || p.v).slice(-60).map((p) => <tr key={p.t}><td>{new Date(p.t).toISOString().slice(11, 19)} UTC</td><td class="right">{p.v === null ? <span class="muted">not observed</span> : show(p.v)}</td></tr>)}</tbody>
    </table></Scroll></details>
  </figure>;
}
