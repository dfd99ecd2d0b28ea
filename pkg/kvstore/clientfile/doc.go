// Package clientfile reads etcd client files: where an etcd is, and who we are to it. It parses and
// checks them, knows the files that they name (authorities, certificate and key), makes the TLS
// configuration of a session, hashes what makes one, and shows what is no secret.
//
// A [Config] is immutable, and all of it may be used by any number of goroutines. What is
// wrong with a file is one [Error] with everything at once; each problem has the code of
// its finding (package codes).
package clientfile
