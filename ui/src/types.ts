// The objects of the API, as far as the page shows them (docs/spec/interface.md).

export interface List<T> { revision: number; freshness?: Record<string, Freshness>; items: T[]; next: string }

export interface Freshness {
  state: "unknown" | "syncing" | "synced" | "stale";
  notRead?: boolean; asOf: string | null; ageSeconds: number | null;
  read?: number; total?: number; message?: string;
  lag?: { medianSeconds: number; p99Seconds: number; maxSeconds: number; batches: number };
}

export const resources = ["nodes", "services", "endpointSlices", "serviceExports", "identities", "ips"] as const;
export type Resource = (typeof resources)[number];
export type ByResource<T> = Record<Resource, T>;

export interface Refusal { resource: string; count: number; reasons: Record<string, number>; remedies: Record<string, string>; key: string; message: string }

export interface Policy {
  state: "keep" | "demote" | "withdraw"; since: string; code: string; doubtful: boolean; reason: string;
  next: string; nextAt: string | null; held: string | null; inDoubt: number; judged: number;
}

export interface Notice { code: string; message: string; remedy: string }

export interface Cluster {
  name: string; id: number; state: string; ready: boolean; connected: boolean; cached: boolean;
  message: string; code: string; remedy: string; trouble: { kind: string; remedy: string } | null;
  endpoints: string[]; etcdClusterID: string; configFile: string; capabilities: Record<string, unknown>;
  synced: ByResource<boolean>; counts: ByResource<number>; rejected: ByResource<number>; refusals: Refusal[];
  freshness: ByResource<Freshness> & { worst: Freshness };
  failures: number; lastFailure: string | null; lastError: string; connectedSince: string | null;
  certificateExpires: string | null; certificates?: { client: string | null; server: string | null; authority: string | null }; etcdVersion?: string; notices?: Notice[] | null; policy: Policy | null;
}

export interface Serving { protocol: string; address: string; requests: number; refused: number }
export interface Written { prefix: string; cluster: string; entries: number; pending: number; refused: number; lastError: string }

/** The last hour in numbers; what was not observed is null. */
export interface Series {
  cluster: string; intervalSeconds: number;
  points: { time: string; state?: string; changesPerSecond: number | null; lagSeconds: number | null; ageSeconds: number | null; entries: number | null }[];
}

/** How many services each two clusters share. */
export interface Sharing { items: { cluster: string; services: number; with: Record<string, number> }[]; unconfirmed: string[] }

interface Losing { services: number; names: string[]; backends: number; of: number }
/** What services have in clusters that cannot be confirmed. */
export interface Impact { clusters: string[]; only: Losing; partly: Losing; each: { cluster: string; only: Losing; partly: Losing }[] }

export interface Status {
  agent: { version: string; cluster: string; clusterID: number; node: string; started: string; mode: string; meshDirectory: string; leads?: boolean };
  state: string; reason?: string; ready: boolean;
  summary: { clusters: number; clustersReady: number; nodes: number; services: number; globalServices: number; identities: number; ips: number; conflicts: number };
  clusters: Cluster[]; ignored: { file: string; reason: string }[] | null;
  kvstore: { state: string; connected: boolean; message: string; code: string; endpoints: string[]; lease: string; lastError: string; written?: Written[] } | null;
  impact?: Impact | null;
  ownCluster: Cluster | null; serving?: Serving[];
  tls?: { server: string | null; authority: string | null; clientAuthority: string | null; notices: Notice[] };
  description?: { source: string; listed: boolean; asOf: string | null; error: string; objects: Record<string, number>; refused: string[] };
}

export interface Port { name: string; protocol: string; port: number }
export interface Backend {
  ip: string; cluster: string; ports: Port[]; hostname: string; zone: string; node: string;
  ready: boolean; serving: boolean; terminating: boolean; preferred: boolean; selected: boolean; local: boolean;
}
export interface Service {
  namespace: string; name: string; global: boolean; affinity: string;
  clusters: { cluster: string; shared: boolean; includeExternal: boolean; backends: number; reason: string }[];
  backends: Backend[];
}
export interface Chosen { ip: string; cluster: string }
export interface Choice {
  port: string; zone: string; node: string; affinity: string;
  groups: { use: string; side: string; near: string; backends: Chosen[]; draining: Chosen[] }[];
  unconfirmed: string[];
}
export interface Node {
  cluster: string; clusterID: number; name: string; addresses: { type: string; ip: string }[]; podCIDRs: string[];
  healthIPs: string[]; ingressIPs: string[]; encryptionKey: number; wireguardPublicKey: string;
  bootID: string; labels: Record<string, string>; annotations: Record<string, string>;
}
export interface Identity { id: number; cluster: string; clusterID: number; labels: Record<string, string> }
export interface IP {
  prefix: string; cluster: string; clusterID: number; identity: number; hostIP: string; encryptionKey: number;
  namespace: string; pod: string; source: string; kind: string; claims: number;
}
export interface Explanation {
  verdict: { code: string; text: string };
  steps: { code: string; cluster: string; text: string; asOf: string | null; keys: { key: string; revision: number; read: string | null; refused?: string }[] | null }[] | null;
}
export interface Lookup {
  ip: string; match: IP | null; identity: Identity | null; node: Node | null; services: { namespace: string; name: string }[];
  candidates: { entry: IP; won: boolean; reason: string }[]; why: Explanation; freshness: Freshness | null; unconfirmed: string[];
}
export interface Conflict { kind: string; code: string; subject: string; clusters: string[]; message: string; rule: string; unlisted?: number; since: string }
export interface MeshEvent { id: number; time: string; cluster: string; kind: string; code: string; message: string; resource: string; name: string; evidence: Record<string, string> }
export interface Health { name: string; cluster: string; state: string; message: string; lastFailure: string | null; consecutiveFailures: number }
export interface Code { code: string; title: string; severity: "info" | "warning" | "error"; cause: string; remedy: string }
export interface XDSClient {
  number: number; peer: string; node: string; program: string; variant: string; since: string;
  follows: { type: string; all: boolean; names: string[] | null; withoutBackends: string[] | null; sent: string; confirmed: string; rejected: number; reason: string; rejectedAt: string | null }[] | null;
}
