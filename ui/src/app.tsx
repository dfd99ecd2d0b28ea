// The page: its frame, and which view is shown.
import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { listen, shortcuts } from "./keys";
import { Ago, Icon, Title } from "./parts";
import { showInTab, wrong } from "./problems";
import { link, route } from "./route";
import { guardTexts } from "./safe";
import { Search } from "./search";
import { conflicts, heard, known, live, lostWhy, said, start, status, viewLostWhy } from "./store";
import { startClock } from "./time";
import { Address, Addresses } from "./views/addresses";
import { Agent } from "./views/agent";
import { Cluster } from "./views/cluster";
import { Code, Codes } from "./views/codes";
import { Conflicts } from "./views/conflicts";
import { Events } from "./views/events";
import { Mesh } from "./views/mesh";
import { Identities, IdentityView, Node, Nodes } from "./views/nodes";
import { Servers } from "./views/servers";
import { Service, Services } from "./views/services";

const views: [path: string, name: string][] = [
  ["", "Mesh"], ["services", "Services"], ["nodes", "Nodes"], ["addresses", "Addresses"], ["identities", "Identities"],
  ["conflicts", "Conflicts"], ["events", "Events"], ["codes", "Codes"], ["servers", "Servers"], ["agent", "Agent"],
];

const searches = signal(0);

function View() {
  const [first = "", a, b, ...rest] = route.value.path;
  if (!rest.length) {
    if (b !== undefined && a !== undefined) {
      if (first === "services") return <Service key={`${a}/${b}`} namespace={a} name={b} />;
      if (first === "nodes") return <Node key={`${a}/${b}`} cluster={a} name={b} />;
    } else if (a !== undefined) {
      if (first === "clusters") return <Cluster key={a} name={a} />;
      if (first === "addresses") return <Address key={a} address={a} />;
      if (first === "identities") return <IdentityView key={a} id={a} />;
      if (first === "codes") return <Code key={a} code={a} />;
    } else {
      switch (first) {
        case "": case "clusters": return <Mesh />;
        case "services": return <Services />;
        case "nodes": return <Nodes />;
        case "addresses": return <Addresses />;
        case "identities": return <Identities />;
        case "conflicts": return <Conflicts />;
        case "events": return <Events />;
        case "codes": return <Codes />;
        case "servers": return <Servers />;
        case "agent": return <Agent />;
      }
    }
  }
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
      <nav aria-label="Views"><ul>{views.map(([path, name]) => <li key={path}><a href={link(path ? [path] : [])} aria-current={first === path ? "page" : undefined}>{name}
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
