// Package clientfile reads etcd client files. A client file has the endpoints of an etcd, and our
// credentials for it. The package parses and checks client files, reads the files that they name
// (authorities, certificate and key), makes the TLS configuration of a session, hashes everything
// that defines a session, and shows the parts that are not secret.
//
// A [Config] is immutable, and any number of goroutines may use it. All problems of a file are
// reported in one [Error]; each problem has the code of its finding (package codes).
package clientfile
