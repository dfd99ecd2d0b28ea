// Package monitoring makes the files in deploy/monitoring: the alerts of Prometheus and the dashboards of
// Grafana. They are data: [Rules] and [Dashboards] are pure functions, and a test compares the files with
// them (go test ./tools/monitoring -update writes the files).
//
// An alert is about all agents of one job in one cluster together, so that a cluster of a thousand nodes
// sends one. Its labels have the code of the registry (pkg/codes), and its runbook is the entry of that
// code in docs/codes.md. PromQL is that of Prometheus 2.42.
//
// # How long something has to last
//
// A rolling upgrade of agents or of a clustermesh-apiserver, a node that starts again, and a slow machine
// must page no operator. A critical condition lasts at least five minutes, and concerns most agents, or
// a task that only one process has. The window of a rate is as long as the alert's condition has to last, so
// that an alert resolves soon after its cause.
package monitoring
