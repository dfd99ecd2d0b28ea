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
package checks
