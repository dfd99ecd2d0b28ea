package xdsserver

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
)

// Variant is the variant of the protocol that a stream uses.
type Variant bool

// The variants of the protocol.
const (
	WholeState  Variant = false // state of the world
	Incremental Variant = true
)

// String is "state of the world" or "incremental".
func (v Variant) String() string {
	if v {
		return "incremental"
	}
	return "state of the world"
}

// Client is a stream of a client. The texts that a client reports about itself are not verified. They are cut, and
// their control characters are escaped.
type Client struct {
	Number  uint64 // of the stream, counted since the start
	Peer    string // its address; "unix" over a unix socket
	Node    string // the ID that the client reports
	Program string // the program and its version, as the client reports
	Variant Variant
	Since   time.Time
	Gone    time.Time   // when it ended; zero while it is open
	Follows []Following // the types that it has asked for, in order
}

// Following has the resources of one type that a client follows.
type Following struct {
	Type  string
	All   bool     // all resources that there are
	Names []string // sorted
	// Without has those of Names that have no usable backend now; for endpoints only.
	Without []string
	// Sent and Confirmed are the last versions that were sent to the client and that it accepted; empty: none.
	Sent, Confirmed string
	Rejected        uint64    // how many answers the client rejected
	Reason          string    // of the last rejection, as the client reports
	RejectedAt      time.Time // time of the last rejection
}

// client is a stream, with the state that [Server.Clients] shows.
type client struct {
	mu sync.Mutex
	Client
	from  netip.Addr // of its peer, an IPv6 /64; invalid over a unix socket
	kinds [kinds]*following
}

// following is the state of one type.
type following struct {
	all             bool
	names           map[string]struct{}
	last            []string // some of the names before there were none: gRPC clients unsubscribe from all names before their streams end
	nonce           string   // of the last answer
	sent, confirmed string
	rejected        uint64
	reason          string
	at              time.Time
}

// The longest texts of clients that are kept, in bytes.
const (
	maxNode   = 128
	maxReason = 512
)

// safe cuts a text of a client, and escapes characters that a terminal would interpret.
func safe(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "..."
	}
	quoted, err := safetext.JSON(strings.ToValidUTF8(text, "?"), "")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(quoted), `"`), `"`)
}

// introduce sets the ID and the program that the client reports; it reports them once.
func (c *client) introduce(n *corev3.Node) {
	if n == nil || n.GetId() == "" && n.GetUserAgentName() == "" {
		return
	}
	version := n.GetUserAgentVersion()
	if v := n.GetUserAgentBuildVersion().GetVersion(); v != nil && version == "" {
		version = strings.Trim(strings.Join([]string{number(v.GetMajorNumber()), number(v.GetMinorNumber()), number(v.GetPatch())}, "."), ".")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Node, c.Program = safe(n.GetId(), maxNode), safe(strings.TrimSpace(n.GetUserAgentName()+" "+version), maxNode)
}

// of returns the state of a kind; c.mu is held.
func (c *client) of(k kind) *following {
	if c.kinds[k] == nil {
		c.kinds[k] = &following{names: make(map[string]struct{})}
	}
	return c.kinds[k]
}

// follow sets the followed names.
func (f *following) follow(all bool, names map[string]struct{}) {
	if len(names) == 0 && len(f.names) > 0 {
		f.last = slices.Sorted(maps.Keys(f.names))
		f.last = slices.Clone(f.last[:min(len(f.last), departedNames)])
	}
	f.all, f.names = all, names
}

// departs returns the client as it was before it unsubscribed from all names, with the time of its end.
func (c *client) departs(now time.Time) Client {
	shown := c.show(func([]string) []string { return nil })
	shown.Gone = now
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range shown.Follows {
		f := &shown.Follows[i]
		for k, of := range c.kinds {
			if of != nil && kind(k).String() == f.Type && len(f.Names) == 0 {
				f.Names = of.last
			}
		}
	}
	return shown
}

// sends notes an answer.
func (c *client) sends(k kind, version, nonce string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.of(k)
	f.sent, f.nonce = version, nonce
}

// answers notes that a client has accepted an answer, or rejected it with a reason. It reports whether this was the
// last answer.
func (c *client) answers(k kind, nonce, rejection string, now time.Time) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.of(k)
	last = nonce != "" && nonce == f.nonce
	switch {
	case rejection != "":
		f.rejected++
		f.reason, f.at = safe(rejection, maxReason), now
	case last:
		f.confirmed = f.sent
	}
	return last
}

// show returns the current state of the client.
func (c *client) show(without func(names []string) []string) Client {
	c.mu.Lock()
	shown := c.Client
	for k, f := range c.kinds {
		if f != nil {
			shown.Follows = append(shown.Follows, Following{
				Type: kind(k).String(), All: f.all, Names: slices.Sorted(maps.Keys(f.names)),
				Sent: f.sent, Confirmed: f.confirmed, Rejected: f.rejected, Reason: f.reason, RejectedAt: f.at,
			})
		}
	}
	c.mu.Unlock()
	for i := range shown.Follows {
		if f := &shown.Follows[i]; f.Type == endpointKind.String() {
			f.Without = without(f.Names)
		}
	}
	return shown
}
