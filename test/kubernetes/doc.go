// Package kubernetes proves on a real API server what internal/own/kubernetes says
// of itself. It has tests only, and they are skipped where there is none:
//
//	make kubernetes
//
// builds the API server, once, in a module of its own (./apiserver), and CoreDNS
// (../consumers/coredns), and runs them.
package kubernetes
