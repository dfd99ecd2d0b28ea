// Server is the program of [etcdtest.StartProcess] if ETCDTEST_PROGRAM names it: an etcd without the race detector of
// the tests, which makes it several times slower.
package main

import "github.com/mesh-agent/mesh-agent/simtest/etcdtest"

func main() { etcdtest.Serve() }
