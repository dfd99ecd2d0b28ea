package kubernetes

import (
	"errors"
	"net/http"
)

// errNoAnswer is what a request without an answer fails with.
var errNoAnswer = errors.New("no answer from the API server")

// transport notes of each request whether the API server answered it. It hides why there was no answer: for some
// reasons the client of Kubernetes would try again by itself, ten times, and then report a watch as open that never
// was. Only [ask] tries again.
type transport struct {
	next    http.RoundTripper
	reached func(noAnswer error)
}

// RoundTrip makes one request.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	switch {
	case err != nil && r.Context().Err() != nil:
		return resp, err
	case err != nil:
		t.reached(err)
		return resp, errNoAnswer
	case resp.StatusCode >= http.StatusInternalServerError:
		t.reached(errors.New(resp.Status))
	default:
		t.reached(nil)
	}
	return resp, nil
}

// WrappedRoundTripper gives those who look for it the transport below.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }
