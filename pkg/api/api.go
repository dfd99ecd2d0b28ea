package api

// Where an agent listens, and a client looks for it.
const (
	DefaultSocket = "/var/run/mesh-agent/mesh-agent.sock"
	DefaultListen = "127.0.0.1:9979"
)
