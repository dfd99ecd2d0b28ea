// Package consumers proves with the clients of users that the view carries traffic: dig and Go's
// resolver, CoreDNS, Unbound, BIND, dnsmasq, HAProxy, nginx, Prometheus and gRPC for Node.js, each as it is released and configured with the very
// text of the documents, with an agent in its own process and three simulated clusters. The
// backends are real servers on loopback addresses.
//
// `make consumers` installs and builds the programs. Without it, tests of a program that is missing
// skip themselves.
package consumers
