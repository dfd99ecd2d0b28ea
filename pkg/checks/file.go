package checks

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// client examines a client file. What the agent's own reader refuses is an
// error in its words; the rest is what the reader lets pass.
func (f *File) client(path, own string, now time.Time) {
	cfg, err := clientfile.Load(path)
	if err != nil {
		f.refused(err)
		return
	}
	encrypted := false
	for _, url := range cfg.Endpoints {
		tls := cfg.UsesTLS(url)
		encrypted = encrypted || tls
		f.Endpoints = append(f.Endpoints, Endpoint{url, tls})
		f.endpoint(cfg, url, tls)
	}
	if n := len(cfg.Endpoints); n > 1 {
		f.add(codes.SeveralEndpoints, fmt.Sprintf("endpoints: there are %d; a session uses one at a time, and the next one when it fails", n), "")
	}
	s, err := cfg.Security()
	if err != nil {
		f.refused(err) // gone since it was loaded
		return
	}
	f.User = cfg.User()
	f.user(cfg.UserName(), own)
	if s.Username != "" {
		f.secret("password", path)
	}
	if encrypted {
		f.tls(s, now)
	}
}

// refused adds what makes the agent refuse the file.
func (f *File) refused(err error) {
	problems := []error{err}
	if refused, ok := errors.AsType[*clientfile.Error](err); ok {
		problems = refused.Problems
	}
	for _, p := range problems {
		f.add(cmp.Or(hint.Code(p), codes.ClientFileOption), strings.Join(strings.Fields(p.Error()), " "), hint.Text(p))
	}
}

// secret warns of a secret that everybody on this machine can read.
func (f *File) secret(what, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		f.add(codes.SecretReadable, fmt.Sprintf("%s: %q can be read by everybody on this machine (mode %04o)", what, path, info.Mode().Perm()),
			"take that away (in a Secret's volume, with defaultMode)")
	}
}

// user notes a name that Cilium gives no reader. The servers that it makes have
// "remote", or one user for each cluster that reads, and "local-" with the own
// cluster's name for its copies of others (spec wire.md §0).
func (f *File) user(name, own string) {
	if slices.Contains([]string{"", "remote", "remote-" + own, "local", "local-" + own}, name) {
		return
	}
	f.add(codes.UnusualUser, fmt.Sprintf("the user is %q; Cilium's for the cluster %q are remote, remote-%[2]s and local-%[2]s", name, own), "")
}
