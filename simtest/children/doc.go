// Package children says how programs are started that are to end with their parent, and that a
// Ctrl-C in the terminal reaches through it alone: each in a process group of its own.
package children
