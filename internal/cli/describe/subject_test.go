package describe

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
)

func TestEveryKindHasASubject(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"clusters", "nodes", "svc", "serviceexports", "identity", "ip", "conflicts", "event", "health"} {
		s, err := findSubject(kind)
		if _, none := s.(plain); err != nil || none {
			t.Errorf("%s: %T, %v", kind, s, err)
		}
	}
	for _, kind := range resource.All() {
		if s, all := subjectAmong(nil, kind, "x").(plain); !all {
			t.Errorf("without one of its own: %T", s)
		}
	}
	if _, err := findSubject("gateways"); err == nil {
		t.Error("there is a description of what does not exist")
	}
}
