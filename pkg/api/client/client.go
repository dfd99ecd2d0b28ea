// Package client sends requests to the HTTP API of an agent. The command line uses it, and any other program may.
//
// Errors are of two kinds. A [*httpapi.Problem] is the agent's own answer: the request was wrong, or the object does
// not exist. If the agent cannot answer, the error is an [ErrUnreachable] with the failed attempt.
//
// Concurrency: a [Client] may be used by any number of goroutines. Calls block
// until the answer begins, their context ends or a deadline passes.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// ErrUnreachable marks every error that prevented an answer of the agent.
var ErrUnreachable = errors.New("the agent cannot be reached")

// Timeouts for a connection, and for the first byte of an answer.
const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 30 * time.Second
)

const maxErrorBody = 64 << 10 // bytes that are read of an error's body

// Options chooses the agent. With neither field set the default socket is
// tried, then the default address. Setting both is an error.
type Options struct {
	Server string // URL, or host:port
	Socket string // path of a unix socket
	TLS    TLSFiles
	// Dial opens the connections, instead of Server and Socket, of a program in whose process the agent runs.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// The defaults, for tests; empty means those of package api.
	DefaultSocket, DefaultServer string
}

// Client sends requests to one agent.
type Client struct {
	base string // URL without a trailing slash
	http *http.Client
}

// New returns a client. It does not connect.
func New(o Options) (*Client, error) {
	t := &http.Transport{ResponseHeaderTimeout: answerTimeout, IdleConnTimeout: time.Minute}
	c := &Client{base: "http://localhost", http: &http.Client{Transport: t}} // over TCP, an agent requires one of its own names as the host
	switch {
	case o.Dial != nil:
		t.DialContext = o.Dial
		return c, nil
	case o.Server != "" && o.Socket != "":
		return nil, errors.New("give either a server or a socket, not both")
	case o.Server != "":
		var err error
		if c.base, err = parseServer(o.Server); err != nil {
			return nil, err
		}
		t.Proxy, t.DialContext = http.ProxyFromEnvironment, (&net.Dialer{Timeout: dialTimeout}).DialContext
		if t.TLSClientConfig, err = o.TLS.config(c.base); err != nil {
			return nil, err
		}
		return c, nil
	case o.TLS != (TLSFiles{}):
		return nil, errors.New("certificates are for a server that is given as https://HOST:PORT")
	}
	places := []place{{"unix", o.Socket}}
	if o.Socket == "" {
		places = []place{
			{"unix", cmp.Or(o.DefaultSocket, api.DefaultSocket)},
			{"tcp", cmp.Or(o.DefaultServer, api.DefaultListen)},
		}
	}
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, places) }
	return c, nil
}

func parseServer(server string) (string, error) {
	text := server
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("server %q: %w", server, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("server %q: want http://HOST:PORT", server)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// place is an address where an agent may listen.
type place struct{ network, address string }

// dial tries the places in their order. Its error includes the errors of all, on one line.
func dial(ctx context.Context, places []place) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	var failed error
	for _, p := range places {
		conn, err := d.DialContext(ctx, p.network, p.address)
		switch {
		case err == nil:
			return conn, nil
		case failed == nil:
			failed = err
		default:
			failed = fmt.Errorf("%w; %w", failed, err)
		}
	}
	return nil, failed
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status returns the agent's status.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return Get[api.Status](ctx, c, "v1", "status")
}

// Lookup returns the claims on an address.
func (c *Client) Lookup(ctx context.Context, address string) (*api.Lookup, error) {
	return Get[api.Lookup](ctx, c, "v1", "lookup", address)
}

// Backends returns the backends for connections to a port of a service, for a client in a zone. An empty port means all
// of them; an empty zone means that of the agent.
func (c *Client) Backends(ctx context.Context, namespace, name, port, zone string) (*api.ServiceBackends, error) {
	query := given(map[string]string{"port": port, "zone": zone})
	return ask[api.ServiceBackends](ctx, c, request{path: []string{"v1", "backends", namespace, name}, query: query})
}

// ConfigKey returns the key of the clusters' configHash. The agent sends it only over its socket.
func (c *Client) ConfigKey(ctx context.Context) (*api.ConfigKey, error) {
	return Get[api.ConfigKey](ctx, c, "v1", "config-key")
}

// LogLevel returns the level of the agent's log.
func (c *Client) LogLevel(ctx context.Context) (*api.LogLevel, error) {
	return Get[api.LogLevel](ctx, c, "v1", "log-level")
}

// SetLogLevel changes the level of the agent's log. The agent accepts it only over its socket.
func (c *Client) SetLogLevel(ctx context.Context, level string) (*api.LogLevel, error) {
	text, err := json.Marshal(api.LogLevel{Level: level})
	if err != nil {
		return nil, err
	}
	return ask[api.LogLevel](ctx, c, request{method: http.MethodPut, path: []string{"v1", "log-level"}, content: bytes.NewReader(text)})
}

// Get returns one object. The parts of the path are escaped.
func Get[T any](ctx context.Context, c *Client, path ...string) (*T, error) {
	return ask[T](ctx, c, request{path: path})
}

// ask sends a request and reads the body of its answer to the end.
func ask[T any](ctx context.Context, c *Client, r request) (*T, error) {
	body, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	v := new(T)
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return nil, broken(ctx, err)
	}
	return v, nil
}

// Text returns an answer of another media type than JSON. The caller closes it.
func (c *Client) Text(ctx context.Context, media string, path ...string) (io.ReadCloser, error) {
	return c.send(ctx, request{media: media, path: path})
}

const mediaJSON = "application/json"

type request struct {
	method  string // empty: GET
	media   string // of the expected answer; empty: mediaJSON
	path    []string
	query   url.Values
	content io.Reader // JSON; nil: none
	token   string    // of a watch to continue
}

func (c *Client) send(ctx context.Context, r request) (io.ReadCloser, error) {
	target := c.base
	for _, part := range r.path {
		target += "/" + url.PathEscape(part)
	}
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.content)
	if err != nil {
		return nil, err
	}
	media := cmp.Or(r.media, mediaJSON)
	req.Header.Set("Accept", media)
	if r.content != nil {
		req.Header.Set("Content-Type", mediaJSON)
	}
	if r.token != "" {
		req.Header.Set("Last-Event-ID", r.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, broken(ctx, err)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // empty if the header is invalid, so not equal to media
	if resp.StatusCode != http.StatusOK || kind != media {
		defer resp.Body.Close()
		return nil, problem(resp, kind)
	}
	return resp.Body, nil
}

// problem converts an answer with an error status into an error.
func problem(resp *http.Response, kind string) error {
	if kind == api.MediaTypeProblem {
		p := new(api.Problem)
		if err := json.NewDecoder(io.LimitReader(resp.Body, maxErrorBody)).Decode(p); err == nil && p.Status != 0 {
			return p
		}
	}
	return fmt.Errorf("%w: %s answers %q, which is not a mesh-agent's", ErrUnreachable, resp.Request.URL, resp.Status)
}

// broken marks a failed exchange, unless its context ended.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}
