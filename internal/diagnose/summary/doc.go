// Package summary says of all clusters together what is wrong, and with which of them ([Reason]), what
// services have there ([Impact]), and which of them share services ([Sharing]). All are pure functions of one state of the clusters and of the services,
// and their answers have bounds: a mesh in which nothing works is described as shortly as any other.
package summary
