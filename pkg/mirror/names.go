package mirror

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// checkName refuses the name of a remote's key, as it stands below the resource's
// prefix, that must not become a part of a key of ours: one that is empty, or that
// would lead elsewhere if somebody took the key for a path. etcd does not, but who
// reads the copy may, as Cilium does, whose keys are joined and cleaned as paths. No
// name that a cluster writes is like that.
func checkName(name string) error {
	if name == "" {
		return refuse(errors.New("the key has no name"))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return refuse(fmt.Errorf("the name %q has the element %q, which would lead out of its prefix", name, part))
		}
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return refuse(fmt.Errorf("the name %q has the control character %q", name, name[i]))
	}
	return nil
}

func refuse(why error) error { return &wire.RejectError{Reason: wire.ReasonKey, Err: why} }
