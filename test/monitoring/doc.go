// Package monitoring tests the files in deploy/monitoring with a real Prometheus, whole agents and
// simulated clusters: each alert fires in a mesh that is broken for it, and resolves when that is mended;
// every panel of the dashboards has data in a mesh that is used, and all metrics that alerts and panels
// ask for exist.
//
// The rules are those of the file, except that their times are divided (hurry). `make consumers` installs
// the programs; without it, tests of a program that is missing skip themselves.
package monitoring
