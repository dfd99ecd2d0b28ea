// The page: its frame, and which view is shown.
import { signal } from "@preact/signals";
import { Fragment, render, type VNode } from "preact";
import { useEffect } from "preact/hooks";
import { listen, shortcuts } from "./keys";
import { kinds } from "./kinds";
import { ListView } from "./list";
import { Ago, Icon, Title } from "./parts";
import { showInTab, wrong } from "./problems";
import { link, route } from "./route";
import { guardTexts } from "./safe";
import { Search } from "./search";
import { conflicts, heard, known, live, lostWhy, said, start, status, viewLostWhy } from "./store";
import { startClock } from "./time";
import { Agent } from "./views/agent";
import { Cluster } from "./views/cluster";
import { Code, Codes } from "./views/codes";
import { Conflicts } from "./views/conflicts";
import { Events } from "./views/events";
import { Mesh } from "./views/mesh";
import { Servers } from "./views/servers";

/** A view of the page: of all of something, and of one, for which the address has some parts more. */
interface Place { path: string; name: string; all: () => VNode; parts?: number; one?: (...parts: string[]) => VNode }

/** By the first part of their addresses, in the order of the navigation; what has no name is not in it. */
const places: Place[] = [
  { path: "", name: "Mesh", all: () => <Mesh /> },
  { path: "clusters", name: "", all: () => <Mesh />, parts: 1, one: (name) => <Cluster name={name} /> },
  ...kinds.map((k): Place => ({ path: k.path, name: k.title, all: () => <ListView key={k.path} of={k} />, parts: k.parts, one: k.view })),
  { path: "conflicts", name: "Conflicts", all: () => <Conflicts /> },
  { path: "events", name: "Events", all: () => <Events /> },
  { path: "codes", name: "Codes", all: () => <Codes />, parts: 1, one: (code) => <Code code={code} /> },
  { path: "servers", name: "Servers", all: () => <Servers /> },
  { path: "agent", name: "Agent", all: () => <Agent /> },
];

const searches = signal(0);

function View() {
  const [first = "", ...parts] = route.value.path;
  const place = places.find((p) => p.path === first);
  if (place && !parts.length) return place.all();
  if (place?.one && parts.length === place.parts) return <Fragment key={parts.join("/")}>{place.one(...parts)}</Fragment>;
  return <><Title text="Not found" /><p>This page has no such view. <a href={link([])}>To the mesh</a></p></>;
}

function Banner() {
  if (live.value && viewLostWhy.value) return <section class="banner" aria-label="Not live"><Icon tone="bad" /><b>This view is not live</b>: {viewLostWhy.value}. The page reconnects by itself.</section>;
  if (live.value) return null;
  if (!heard.value) return lostWhy.value ? <section class="banner" aria-label="Not live"><Icon tone="bad" />Not live: {lostWhy.value}. The page tries again.</section> : null;
  return <section class="banner" aria-label="Not live"><Icon tone="bad" /><b>Not live.</b> The data is as of <Ago at={heard.value} />: {lostWhy.value}. The page reconnects by itself.</section>;
}

function App() {
  const first = route.value.path[0] === "clusters" ? "" : route.value.path[0] ?? "";
  const n = wrong.value.length;
  useEffect(() => {
    scrollTo(0, 0);
  }, [route.value.path.join("/")]);
  return <>
    <header>
      <a class="skip" href={`${location.hash || "#/"}`} onClick={(e) => { e.preventDefault(); document.querySelector<HTMLElement>("main h1")?.focus(); }}>Skip to the content</a>
      <div class="top">
        <a class="home" href={link([])}>mesh-agent</a>
        <span class="muted own">{status.value?.agent.cluster}{status.value?.agent.node && ` / ${status.value.agent.node}`}</span>
        <span class="live">{live.value && !viewLostWhy.value ? <><Icon tone="good" />live</> : <><Icon tone={heard.value ? "bad" : "busy"} />{heard.value ? "not live" : "connecting"}</>}</span>
        <button type="button" class="search" aria-keyshortcuts={shortcuts.value ? "/ Control+K" : "Control+K"} onClick={() => { searches.value++; }}>Search{shortcuts.value && <kbd aria-hidden="true">/</kbd>}</button>
      </div>
      <nav aria-label="Views"><ul>{places.filter((p) => p.name).map(({ path, name }) => <li key={path}><a href={link(path ? [path] : [])} aria-current={first === path ? "page" : undefined}>{name}
        {path === "" && known.value && n > 0 && <span class="count"> {n}<span class="unseen"> need attention</span></span>}
        {path === "conflicts" && conflicts.value.size > 0 && <span class="count"> {conflicts.value.size}</span>}</a></li>)}</ul></nav>
    </header>
    <Banner />
    <main><View /></main>
    <div class="unseen" aria-live="polite" role="status">{said.value}</div>
    <Search asked={searches} />
  </>;
}

guardTexts();
start();
startClock();
showInTab();
listen(() => { searches.value++; });
const app = document.getElementById("app");
if (app) {
  app.textContent = "";
  render(<App />, app);
}
