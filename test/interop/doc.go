// Package interop is the frame of the tests against the real thing: it starts peers,
// which are programs made of the packages of a release of Cilium, and keeps the
// results that docs/interop.md is made of.
//
//	model/    what both sides speak of: objects and calls; a module of its own
//	peer/     the peers, and how the clustermesh-apiserver is built; a module of its own, with one go.mod for each release
//	ours/     the objects in this project's terms
//	random/   objects from a seed, boundary values included
//	report/   writes docs/interop.md from the results
//	…         the tests, by subject
//
// `make interop` builds the peers and runs everything. By hand: the folder of the
// peers is given in CILIUM_PEERS, and tests without their peer are skipped.
package interop
