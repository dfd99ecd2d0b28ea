package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/simtest/sim"
)

// The control socket speaks HTTP: the answer to a POST with a Request in JSON is an Answer, or a fault.
const (
	controlURL      = "http://mesh-sim/"
	maxRequestBytes = 32 << 20
	controlGrace    = 5 * time.Second // for pending answers when the simulator ends
)

// fault is the answer to a request that failed. The status has the cause:
// 400 a wrong request, 409 the present state, 500 the simulator.
type fault struct {
	Error string `json:"error"`
}

// serveControl answers requests until ctx ends, which is no error.
func (m mesh) serveControl(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: http.HandlerFunc(m.control), ReadHeaderTimeout: controlGrace}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("control socket: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), controlGrace)
		defer cancel()
		if err := s.Shutdown(grace); err != nil {
			return s.Close()
		}
		return nil
	})
	return g.Wait()
}

func (m mesh) control(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	a, err := m.answer(w, r)
	var refused *sim.RefusedError
	switch {
	case err == nil:
		_ = json.NewEncoder(w).Encode(a) // a client that has gone needs no answer
		return
	case errors.As(err, &refused) && refused.Usage:
		w.WriteHeader(http.StatusBadRequest)
	case errors.As(err, &refused):
		w.WriteHeader(http.StatusConflict)
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
	_ = json.NewEncoder(w).Encode(fault{Error: err.Error()})
}

// answer reads the request and executes it. A client that disconnects does not interrupt it.
func (m mesh) answer(w http.ResponseWriter, r *http.Request) (Answer, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/" {
		return Answer{}, misuse("%s %s: requests are sent with POST /", r.Method, r.URL.Path)
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	d.DisallowUnknownFields()
	var q Request
	if err := d.Decode(&q); err != nil {
		return Answer{}, misuse("the request cannot be read: %v", err)
	}
	return m.do(context.WithoutCancel(r.Context()), q)
}

// Ask sends a request to the simulator on a control socket. A *sim.RefusedError means that it was not executed, and has
// the reason; a *NoSimulatorError means that no simulator listens there.
func Ask(ctx context.Context, socket string, q Request) (Answer, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return Answer{}, fmt.Errorf("write the request: %w", err)
	}
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
			if err != nil {
				return nil, &NoSimulatorError{fmt.Errorf("no simulator answers on %s: %w", socket, err)}
			}
			return c, nil
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, controlURL, bytes.NewReader(text))
	if err != nil {
		return Answer{}, fmt.Errorf("write the request: %w", err)
	}
	resp, err := c.Do(req)
	if nobody, is := errors.AsType[*NoSimulatorError](err); is {
		return Answer{}, nobody
	}
	if err != nil {
		return Answer{}, fmt.Errorf("ask the simulator on %s: %w", socket, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("read the simulator's answer: %w", err)
	}
	return readAnswer(resp.StatusCode, body)
}

func readAnswer(status int, body []byte) (a Answer, err error) {
	if status == http.StatusOK {
		if err := json.Unmarshal(body, &a); err != nil {
			return a, fmt.Errorf("the simulator's answer cannot be read: %w", err)
		}
		return a, nil
	}
	var f fault
	if err := json.Unmarshal(body, &f); err != nil || f.Error == "" {
		return a, fmt.Errorf("whoever answers is no simulator: status %d", status)
	}
	switch status {
	case http.StatusBadRequest:
		return a, misuse("%s", f.Error)
	case http.StatusConflict:
		return a, &sim.RefusedError{Reason: f.Error}
	}
	return a, errors.New(f.Error)
}
