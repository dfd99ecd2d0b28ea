// Package children has the attributes of child processes that end with their parent, and that get a Ctrl-C of the
// terminal only through the parent: each is in a process group of its own.
package children
