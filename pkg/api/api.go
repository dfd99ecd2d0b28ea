package api

// Where an agent listens by default, and where a client connects.
const (
	DefaultSocket = "/var/run/mesh-agent/mesh-agent.sock"
	DefaultListen = "127.0.0.1:9979"
)
