package sim

import "fmt"

// RefusedError says why something that was asked of a running mesh was not done.
// Nothing has changed.
type RefusedError struct {
	// Usage: the request is wrong in every state of the mesh.
	Usage  bool
	Reason string
}

func (e *RefusedError) Error() string { return e.Reason }

// refuse is for requests that do not fit the present state.
func refuse(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// misuse is for requests that are wrong in themselves.
func misuse(format string, args ...any) error {
	return &RefusedError{Usage: true, Reason: fmt.Sprintf(format, args...)}
}
