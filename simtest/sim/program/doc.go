// Package program is mesh-sim without its flags: the settings of a simulator ([Settings]), one run of it ([Simulate]),
// with a program that is started on the mesh, and the requests to it while it runs, by name ([Commands]), also from
// other processes over a socket ([Ask]).
package program
