// The shared worker of all windows of a browser that show the page of one agent.
import { Hub } from "./hub";

const hub = new Hub();
(globalThis as unknown as { onconnect: (e: MessageEvent) => void }).onconnect = (e) => {
  for (const port of e.ports) hub.connect(port);
};
