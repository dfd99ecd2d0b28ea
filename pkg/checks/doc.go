// Package checks tells what is wrong with a mesh directory before it is applied:
// [Directory] looks at its files as a running agent would and connects to
// nothing, [Report.Connect] asks the servers behind them, and [Report.Compare]
// says what the directory would change in a running agent. [Report.JUnit] writes
// a report for programs that collect the results of tests.
//
// What the agent's own code refuses is an error in its words; the rest is what it
// lets pass. Every finding has a code (package codes).
//
// # Concurrency
//
// A [Report] belongs to one goroutine. Connect checks all files side by side and
// returns after every goroutine that it started.
//
// # Failure
//
// Only a directory that cannot be read is an error; everything else is a finding.
//
// # Design
//
// What can be checked offline is checked with the agent's own code: the
// directory's scan and the client file's reader; this package adds only what they
// let pass (dates, modes, plain text). Connect is package troubleshoot for each
// file, and Compare compares with what /v1/status says: contents by the hash that
// the agent gives of the file and of those that it names, as it has read them
// (configHash), with a key that it gives over the unix socket only.
package checks
