// Package hostile runs agents and mirrors against a remote cluster whose etcd is
// hostile: a fake one, at gRPC, that is honest by itself and breaks one rule of
// the protocol, or many at random. It has tests only.
//
// The other clusters are honest, on real etcds. With every broken rule the
// process lives, the others stay fresh and equal to their etcds, the hostile one
// shows the right code, memory stays in its bound, and no goroutine is left.
//
//	go test ./test/hostile -run Rules -v                    # one rule per subtest, several at once
//	go test ./test/hostile -run Mixture -v -hostile.steps=100000 -hostile.seed=7
//	go test ./test/hostile -run Mirror -v                   # the same against a mirror
//	go test ./test/hostile -run Limit -v                    # an agent with 512 MiB
//	go test ./test/hostile -fuzz FuzzResponses
package hostile
