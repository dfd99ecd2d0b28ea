// Package servers attacks the servers of the real program, in a process of its own with little memory: DNS, xDS,
// the HTTP API, and the answers made from keys of a remote cluster that an attacker writes. It has tests only.
//
// Friendly clients of each server ask all the time. During every attack the process lives, its
// memory stays in its bound, the friendly clusters stay fresh, no friendly stream ends, and friendly clients
// wait at most twice as long as with an equally busy, harmless client.
//
//	go test ./test/hostile/servers -run Packets -v -servers.steps=1000000 -servers.seed=7   # DNS
//	go test ./test/hostile/servers -run Questions -v                                    # DNS, for a service of very many backends
//	go test ./test/hostile/servers -run Requests -v                                     # xDS, and HTTP
//	go test ./test/hostile/servers -run Frames -v                                       # HTTP/2 and gRPC
//	go test ./test/hostile/servers -run Keys -v                                         # names and shapes of a remote
//	go test ./test/hostile/servers -run Attacks -v -servers.each=30s                      # on memory and places, one after the other
//	go test ./test/hostile/servers -run Together -v -servers.time=10m                     # all at once
package servers
