// Package monitoring proves what is in deploy/monitoring with a real Prometheus, whole agents and
// simulated clusters: each alert fires in a mesh that is broken for it, and resolves when that is mended;
// every panel of the dashboards has data in a mesh that is used, and all metrics that alerts and panels
// ask for exist.
//
// Rules are those of the file, but that times in them are divided (hurry). `make consumers` installs
// what is needed; without it, tests of a program that is missing skip themselves.
package monitoring
