// Package api is the contract of the agent's HTTP interface: the JSON of its answers, as types, the names of its states
// and events, and where an agent listens by default. interface.md describes the routes.
//
// The server fills these types and the client (package client) reads them. The package imports only the protocol and
// the registry of findings, so that a program can use an agent without the libraries of etcd, gRPC and Kubernetes. The
// comments in the field tags are those of the OpenAPI document.
//
// Some fields are derived from others: [Cluster.Assess] derives the remedy, the kind of trouble and the worst
// freshness. The client derives them for older agents that do not send them.
//
// Concurrency: the types are plain data.
package api
