// Package program is mesh-sim without its flags: what a person asks of a simulator ([Settings]),
// one run of it ([Simulate]), with a program that is started on the mesh, and what can be asked of
// it by name while it runs ([Commands]), also by other processes over a socket ([Ask]).
package program
