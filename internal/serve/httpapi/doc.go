// Package httpapi serves what the agent knows over HTTP: health, metrics, status,
// the tables as lists and single objects, and the answer to "whose address is
// this". interface.md is its contract; package api has its JSON as types.
//
//	tables ─ one snapshot ─► filter ─► convert ─► JSON, item by item
//
// Every list is described by one [resource] and served by one handler: it takes a consistent
// snapshot, walks it in the order of the keys and writes each item as it comes, so that a million
// of them need no more memory than one. Answers are converted when they are read; nothing is kept.
// A page's cursor names the last item of the page, not a place in a snapshot, so it stays good
// while the tables change: what was there all along is seen exactly once.
//
// The revision of a list is the position of its snapshot in the sequence of all
// changes: it shows what these have made, neither more nor less.
//
// Errors, those of unknown paths and methods included, are problem documents
// (RFC 9457). The server knows no users: [Server.Listen] therefore warns when an
// address is not a loopback one, and what changes the agent or shows its inside
// (its log's level, its profiles) is answered on the unix socket only.
//
// Concurrency: a [Server] may be used by any number of goroutines. Handlers hold
// no lock while they write; a client that does not read for [transport.WriteTimeout] is
// disconnected, so that it cannot keep a snapshot alive.
//
// # Design
//
// There is one feed of all changes, that of package view: its positions are the revisions of
// lists and of /v1/watch, and a list is exactly what the changes up to its revision make. So
// a watch goes on wherever it was cut off, as far as the feed reaches back (else it begins again
// with the state), and a deletion reaches exactly those who have the object. Only addresses that
// are chosen by the labels of their identities depend on more: the names that such a client was
// sent are kept for it, and it always begins again.
//
// What is followed is what is listed, item by item. What changes without an event is in neither:
// freshness is given once for a whole list, and in the reason of a service that is asked for alone.
// Of clusters and health a list shows it as of now (ageSeconds, lastEvent, lastSuccess, what is
// confirmed), and a watch has null there.
//
// Status reads the mesh directory itself, so a change shows immediately: a file
// without a controller is a cluster that is about to be connected.
//
// A watch takes its connection over from net/http and keeps nothing while it is idle: buffers are
// lent. What unknown clients may cost is bounded in one place (gate), and what browsers send for
// others is refused in one (docs/api-security.md).
package httpapi
