// The kinds of objects of the API that have views: each is described in one file of views, and everything that is done for all
// of them follows from these lists: the navigation and the addresses, links, the search, the numbers of the overview.
import type { Kind, Listed } from "./list";
import { link } from "./route";
import { addresses } from "./views/addresses";
import { identities } from "./views/identities";
import { nodes } from "./views/nodes";
import { services } from "./views/services";

/** All, in the order of the navigation. */
export const kinds: Kind<Listed>[] = [services, nodes, addresses, identities];

/** Those that the overview counts, in its order. */
export const counted = [nodes, services, identities, addresses];

/** What the objects of a resource are called. */
export const nounOf = (resource: string) => kinds.find((k) => k.resource === resource)?.noun ?? resource;

/** Where an object of a list of the API is shown; nothing for what has no view. */
export function linkTo(resource: string, name: string): string | undefined {
  const parts = name.split("/");
  if (resource === "clusters") return link(["clusters", name]);
  if (resource === "conflicts") return link(["conflicts"], { contains: parts.slice(1).join("/") });
  const kind = kinds.find((k) => k.resource === resource);
  return kind?.linkTo ? kind.linkTo(name) : kind?.parts === parts.length ? link([kind.path, ...parts]) : undefined;
}
