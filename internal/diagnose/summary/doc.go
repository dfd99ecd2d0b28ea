// Package summary describes the problems of all clusters together and the clusters that have them ([Reason]), the
// backends that services have in them ([Impact]), and the clusters that share services ([Sharing]). All are pure
// functions of one state of the clusters and of the services, and their answers have bounds: the description of a
// mesh in which nothing works is as short as any other.
package summary
