// Package live has the tests of clusters whose etcd is written by the one side and
// read by the other, and of meshes that both are in.
package live
