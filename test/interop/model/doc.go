// Package model is the common data of the two sides of an interoperability test: the
// objects of a cluster mesh as plain data, independent of both sides, and the calls
// with which a test drives a peer, a program built from a release of Cilium.
//
// Objects say what they mean, not how they are written: a prefix is a prefix, not an
// address with the bytes of a mask. Each side translates from and to its own types, see
// [Translate]: data lost in the translation shows as a difference. Maps and lists that are nil
// are the same as empty ones, unless a comment says otherwise.
//
// It is a module of its own, without requirements, because the peers must have
// exactly the requirements of their release of Cilium.
package model
