// Package docs runs the commands of the documents as a reader would, against
// simulated meshes, and compares what they print with what the documents show.
//
// A page is one session of a shell. The lines of an indented block that begin with
// "$ " are commands; the lines after one are its output. Before the comparison what
// differs from run to run is masked: times, ages, ports, random names, the widths of
// columns. "..." stands for any output. A command whose output is not yet what the
// page shows is tried again, since a mesh changes a moment after a command. With
// -update the pages get the real output.
//
// TestSite builds the site and checks its links, and that it asks no other server
// for anything.
package docs
