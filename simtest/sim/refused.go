package sim

import "fmt"

// RefusedError is the reason why a request to a running mesh was not executed. Nothing has changed.
type RefusedError struct {
	// Usage: the request is wrong in every state of the mesh.
	Usage  bool
	Reason string
}

func (e *RefusedError) Error() string { return e.Reason }

// refuse returns the error for a request that does not fit the present state.
func refuse(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// misuse returns the error for a request that is always invalid.
func misuse(format string, args ...any) error {
	return &RefusedError{Usage: true, Reason: fmt.Sprintf(format, args...)}
}
