package command

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// TestALostAgentIsSaidOnce: a connection that breaks and one that is refused are reported as one loss; an answer ends
// it.
func TestALostAgentIsSaidOnce(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	w := &watcher{errs: &errs, screen: printer.NewScreen(&out, func(string) string { return "" }, "")}
	for _, err := range []error{
		nil, fmt.Errorf("%w: EOF", client.ErrUnreachable), fmt.Errorf("%w: refused", client.ErrUnreachable), errors.New("busy"), errors.New("busy"),
		nil, fmt.Errorf("%w: reset", client.ErrUnreachable),
	} {
		if shown := w.show(err); shown != nil {
			t.Fatal(shown)
		}
	}
	lost := lostAgent + client.ErrUnreachable.Error()
	if want := lost + ": EOF\nError: busy\n" + lost + ": reset\n"; errs.String() != want {
		t.Errorf("it said\n%swant\n%s", errs.String(), want)
	}
}
