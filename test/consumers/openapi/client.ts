// A client as somebody writes it who has nothing but the document: its types are those that openapi-typescript makes of
// /openapi.json, and what it prints is compared with the agent.
import createClient from "openapi-fetch";
import type { components, paths } from "./types.js";

declare const process: { argv: string[] };

const api = createClient<paths>({ baseUrl: process.argv[2] ?? "" });
const line = (...of: unknown[]) => console.log(of.join(" "));

type Cluster = components["schemas"]["Cluster"];
const describe = (c: Cluster) => `${c.name} ${c.id} ${c.state} ${c.policy?.state ?? "no policy"} ${c.notices.length}`;

const status = await api.GET("/v1/status");
for (const c of status.data?.clusters ?? []) line("cluster", describe(c));

const services = await api.GET("/v1/services", { params: { query: { namespace: "shop", limit: 1 } } });
for (const s of services.data?.items ?? []) line("service", s.namespace, s.name);
const rest = await api.GET("/v1/services", { params: { query: { namespace: "shop", cursor: services.data?.next ?? "" } } });
for (const s of rest.data?.items ?? []) line("service", s.namespace, s.name);

const cart = await api.GET("/v1/services/{namespace}/{name}", { params: { path: { namespace: "shop", name: "cart" } } });
line("found", cart.data?.name);

const node = await api.GET("/v1/nodes/{cluster}/{name}", { params: { path: { cluster: "east", name: "no/such node" } } });
line("missing", node.response.status, node.error?.title);

// An identity can be asked for as a list of labels, which has slashes.
const labels = await api.GET("/v1/lookup/{address}", { params: { path: { address: "no/address" } } });
line("wrong", labels.response.status, labels.error?.status);
