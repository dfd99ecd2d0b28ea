// Package httpapi serves the agent's data over HTTP: health, metrics, status, the tables as lists and single objects,
// and the lookup of the owner of an address. interface.md is its contract; package api has its JSON as types.
//
//	tables ─ one snapshot ─► filter ─► convert ─► JSON, item by item
//
// Every list is described by one [resource] and served by one handler. The handler takes a consistent snapshot, visits
// it in the order of the keys, and writes each item at once, so that a million items need no more memory than one.
// Answers are converted when a client reads them; no converted answer is kept. The cursor of a page names the last item
// of the page, not a place in a snapshot, so it stays valid while the tables change: a client receives each item that
// existed all the time exactly once.
//
// The revision of a list is the position of its snapshot in the sequence of all changes: the list shows the result of
// exactly these changes.
//
// Errors are problem documents (RFC 9457), also for unknown paths and methods. The server does not authenticate
// users: [Server.Listen] therefore warns when an address is not a loopback one, and requests that change the agent
// or show its internals (the level of its log, its profiles) are answered on the unix socket only.
//
// Concurrency: a [Server] may be used by any number of goroutines. Handlers hold no lock while they write. A client
// that does not read for [transport.WriteTimeout] is disconnected, so that it cannot keep a snapshot alive.
//
// # Design
//
// There is one feed of all changes, the feed of package view: its positions are the revisions of lists and of
// /v1/watch, and a list is exactly the result of the changes up to its revision. So a watch continues from the
// position where it was interrupted, if the feed still has that position; otherwise it begins again with the state. A
// deletion is sent to exactly the clients that have the object. Only addresses that are filtered by the labels of
// their identities depend on more: the server keeps the names that it has sent to a client with this filter, and a new
// watch with this filter always begins with the state.
//
// A watch sends the same items as a list. Values that change without an event are in neither: freshness is given once
// for a whole list, and in the reason of a service that is requested as a single object. For clusters and health, a
// list has the current values (ageSeconds, lastEvent, lastSuccess, the time up to which data is confirmed), and a watch
// has null for them.
//
// Status reads the mesh directory itself, so a change is visible immediately: a client file without a controller is a
// cluster that is about to be connected.
//
// A watch takes its connection over from net/http and holds no buffers while it is idle: it borrows them. The costs of
// unknown clients are limited in one place (gate), and requests of web pages of other origins are refused in one place
// (docs/api-security.md).
package httpapi
