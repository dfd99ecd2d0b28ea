package checks

import (
	"crypto/x509"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// situation is a client file, and its problems.
type situation struct {
	lines []string // CA stands for the file with the authority
	want  []found
}

func situations() map[string]situation {
	const (
		https = "endpoints: ['https://c2.mesh.cilium.io:2379']"
		ca    = "trusted-ca-file: CA"
	)
	endpoint := func(url string) []string { return []string{"endpoints: ['" + url + "']", ca} }
	plain := func(part string) []found { return []found{{codes.EndpointPlain, part}} }
	impossible := func(part string) []found { return []found{{codes.EndpointHostImpossible, part}} }
	user := func(name string) []string {
		return append(endpoint("https://c2.mesh.cilium.io:2379"), "username: "+name, "password: x")
	}
	return map[string]situation{
		"well":                       {lines: []string{https, ca}},
		"plain":                      {[]string{"endpoints: ['http://c2:2379']"}, plain("http://c2:2379 is not encrypted")},
		"plain, by option":           {[]string{"endpoints: ['192.0.2.1:2379']", "insecure-transport: true"}, plain("192.0.2.1:2379 is not encrypted")},
		"plain on a loopback":        {lines: []string{"endpoints: ['http://127.0.0.3:2379']"}},
		"plain on the loopback's v6": {lines: []string{"endpoints: ['http://[::1]:2379']"}},
		"plain on localhost":         {lines: []string{"endpoints: ['http://localhost:2379']"}},
		"a socket":                   {lines: []string{"endpoints: ['unix:///run/etcd.sock']", "insecure-transport: true"}},
		"two endpoints":              {[]string{"endpoints: ['https://a:1', 'https://b:1']", ca}, []found{{codes.SeveralEndpoints, "there are 2"}}},
		"believes everybody":         {[]string{https, "insecure-skip-tls-verify: true"}, []found{{codes.ServerNotVerified, "the agent trusts any server"}}},
		"the system's authorities":   {[]string{https}, []found{{codes.SystemAuthorities, "no trusted-ca-file"}}},

		"no endpoints":         {[]string{"endpoints: []"}, []found{{codes.ClientFileEndpoints, "at least one is needed"}}},
		"no YAML":              {[]string{"endpoints: [x"}, []found{{codes.ClientFileNoYAML, "yaml: line 1"}}},
		"no URL":               {[]string{"endpoints: ['ftp://x:1']"}, []found{{codes.ClientFileEndpoints, `"ftp://x:1": the scheme`}}},
		"no port":              {[]string{"endpoints: ['https://x']"}, []found{{codes.ClientFileEndpoints, "host and port"}}},
		"an unknown option":    {[]string{https, ca, "trusted-ca: x"}, []found{{codes.ClientFileOption, "trusted-ca: unknown option"}}},
		"a wrong type":         {[]string{https, "username: [x]"}, []found{{codes.ClientFileOption, "username: "}}},
		"a user alone":         {[]string{https, ca, "username: x"}, []found{{codes.ClientFileUser, "one is given without the other"}}},
		"several at once":      {[]string{"endpoints: []", "x: 1", "trusted-ca-file: /nope"}, []found{{codes.ClientFileOption, "x: unknown"}, {codes.ClientFileEndpoints, "at least one"}, {codes.FileMissing, "/nope"}}},
		"no authority":         {[]string{https, "trusted-ca-file: /nope"}, []found{{codes.FileMissing, "/nope"}}},
		"no authority in it":   {[]string{https, "trusted-ca-file: /etc/hostname"}, []found{{codes.AuthoritiesUnusable, "no certificate in it"}}},
		"no certificate":       {[]string{https, "cert-file: /nope1", "key-file: /nope2"}, []found{{codes.FileMissing, "/nope1"}, {codes.FileMissing, "/nope2"}}},
		"a certificate of PEM": {[]string{https, "cert-file: /etc/hostname", "key-file: /etc/hostname"}, []found{{codes.CertificateUnusable, "/etc/hostname"}}},
		"a key alone":          {[]string{https, "key-file: /nope"}, []found{{codes.CertificateAlone, "cert-file is needed"}}},

		"an address":           {endpoint("https://192.0.2.1:2379"), []found{{codes.EndpointIsAddress, "must be for 192.0.2.1"}}},
		"an IPv6 address":      {endpoint("https://[2001:db8::1]:2379"), []found{{codes.EndpointIsAddress, "must be for 2001:db8::1"}}},
		"a loopback address":   {lines: endpoint("https://127.0.0.1:2379")},
		"dots in a row":        {endpoint("https://c2..io:2379"), impossible("nothing between two of its dots")},
		"a long part":          {endpoint("https://" + strings.Repeat("a", 64) + ".io:2379"), impossible("64 characters")},
		"a long name":          {endpoint("https://" + strings.Repeat("a.", 150) + "io:2379"), impossible("302 characters")},
		"a hyphen":             {endpoint("https://-c2.io:2379"), impossible("begins or ends with a hyphen")},
		"a strange character":  {endpoint("https://c2$.io:2379"), impossible("characters that are in no name")},
		"no address":           {endpoint("https://192.0.2.256:2379"), impossible("looks like an address")},
		"an underscore":        {lines: endpoint("https://c_2.io:2379")},
		"a dot at the end":     {lines: endpoint("https://c2.io.:2379")},
		"an alias of any name": {lines: append(endpoint("https://c2..io:2379"), "cilium-host-aliases: [{hostname: c2..io, ips: [192.0.2.1]}]")},

		"remote":                  {lines: user("remote")},
		"remote of ours":          {lines: user("remote-own")},
		"our copies' reader":      {lines: user("local-own")},
		"remote of somebody else": {user("remote-c9"), []found{{codes.UnusualUser, `the user is "remote-c9"; Cilium's for the cluster "own" are remote, remote-own and local-own`}}},
		"root":                    {user("root"), []found{{codes.UnusualUser, `the user is "root"`}}},
	}
}

// checkClientFiles goes through what can be wrong with a file alone.
func checkClientFiles(t *testing.T, all *gathered) {
	for name, s := range situations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i := range s.lines {
				s.lines[i] = strings.ReplaceAll(s.lines[i], "CA", w.caFile)
			}
			w.file("c2", s.lines...)
			r := w.report(time.Now())
			f := r.of(t, "c2")
			all.add(r)
			wantFindings(t, f.Findings, s.want)
			if fails := f.Verdict == WouldFail; f.Cluster != "c2" || fails != (r.Errors > 0) || f.Verdict == WouldIgnore {
				t.Errorf("%+v", f)
			}
			if strings.Contains(fmt.Sprintf("%+v", f), "password: x") {
				t.Errorf("a password: %+v", f)
			}
		})
	}
}

func checkCertificates(t *testing.T, all *gathered) {
	now := time.Now()
	valid := func(from, to time.Duration) pki.Option { return pki.Valid(now.Add(from), now.Add(to)) }
	usage := func(u ...x509.ExtKeyUsage) pki.Option { return func(c *x509.Certificate) { c.ExtKeyUsage = u } }
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		option pki.Option
		at     time.Time
		want   []found
	}{
		"good":                  {valid(-day, 90*day), now, nil},
		"about to expire":       {valid(-day, 10*day+time.Hour), now, []found{{codes.CertificateExpiresSoon, "expires on " + now.Add(10*day+time.Hour).UTC().Format(time.DateOnly) + ", in 10 days"}}},
		"expired":               {pki.Expired(), now, []found{{codes.CertificateExpired, "the certificate expired on "}}},
		"not yet valid":         {valid(day, 90*day), now, []found{{codes.CertificateNotYetValid, "is not valid before"}}},
		"an expired authority":  {valid(-day, 20*365*day), now.Add(11 * 365 * day), []found{{codes.AuthoritiesExpired, "its last authority expired"}}},
		"an authority near end": {valid(-day, 20*365*day), now.Add(10*365*day - 5*day - time.Hour), []found{{codes.AuthoritiesExpireSoon, "its last authority expires"}}},
		"a server's":            {usage(x509.ExtKeyUsageServerAuth), now, []found{{codes.CertificateNotForClients, "the certificate of remote is not for clients"}}},
		"for both":              {usage(x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth), now, nil},
		"for everything":        {usage(x509.ExtKeyUsageAny), now, nil},
		"for nothing by name":   {usage(), now, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			lines, _ := w.client("remote", test.option)
			w.file("c2", append(lines, "endpoints: ['https://x:1']")...)
			r := w.report(test.at)
			all.add(r)
			f := r.of(t, "c2")
			wantFindings(t, f.Findings, test.want)
			if f.User != "remote (certificate)" || f.CertificateExpires == nil {
				t.Errorf("%+v", f)
			}
			// Without TLS none of it matters.
			w.file("c2", append(lines, "endpoints: ['http://127.0.0.1:1']")...)
			if f := w.report(test.at).of(t, "c2"); len(f.Findings) > 0 || f.User != "nobody" {
				t.Errorf("without TLS: %+v", f)
			}
		})
	}
}

func checkKeys(t *testing.T, all *gathered) {
	w := newWorld(t)
	one, key := w.client("remote")
	two, _ := w.client("local")
	w.file("c2", append(one[:2:2], two[2], "endpoints: ['https://x:1']")...)
	r := w.report(time.Now())
	all.add(r)
	wantFindings(t, r.of(t, "c2").Findings, []found{{codes.CertificateOfOtherKey, "private key does not match"}})

	w.file("c2", append(one, "endpoints: ['https://x:1']")...)
	w.file("c3", "endpoints: ['http://127.0.0.1:1']", "username: remote", "password: geheim")
	for path, mode := range map[string]os.FileMode{key: 0o644, filepath.Join(w.dir, "c3"): 0o604} {
		waittest.Must(t, os.Chmod(path, mode))
	}
	r = w.report(time.Now())
	all.add(r)
	wantFindings(t, r.of(t, "c2").Findings, []found{{codes.SecretReadable, "key-file: \"" + key + "\" can be read by all users of this machine (mode 0644)"}})
	f := r.of(t, "c3")
	wantFindings(t, f.Findings, []found{{codes.SecretReadable, "password: "}})
	if f.User != "remote (password)" || strings.Contains(fmt.Sprintf("%+v", f), "geheim") {
		t.Errorf("%+v", f)
	}
}

// checkEntries: what a scan takes for a cluster, the check does, and nothing else.
func checkEntries(t *testing.T, all *gathered) {
	w := newWorld(t)
	const client = "endpoints: ['http://127.0.0.1:1']"
	for _, name := range []string{"c2", "c3", "own", "Bad_Name", "C2", "OWN"} {
		w.file(name, client)
	}
	w.file("broken", "endpoints: [")
	w.file("ca.crt", "no marker")
	w.file("empty")
	w.file("huge", client, strings.Repeat("#", 1<<20))
	for name, target := range map[string]string{"link": "c2", "dangling": "nope", "loop": "loop"} {
		waittest.Must(t, os.Symlink(target, filepath.Join(w.dir, name)))
	}
	waittest.Must(t, os.Mkdir(filepath.Join(w.dir, "..data"), 0o700))
	files, err := clustermesh.Files(w.dir)
	waittest.Must(t, err)
	r := w.report(time.Now())
	all.add(r)
	agent, check := map[string]string{}, map[string]string{}
	for name, f := range files {
		if sum, err := clientfile.Fingerprint(f.Path); err == nil {
			agent[name] = fmt.Sprintf("%x", sum)
		} else {
			agent[name] = "" // it cannot be read
		}
	}
	delete(agent, "own")
	verdicts := map[string]string{}
	for _, f := range r.Files {
		verdicts[filepath.Base(f.File)] = f.Verdict
		if f.Verdict != WouldIgnore {
			check[f.Cluster] = f.contents
		} else if f.Reason == "" {
			t.Errorf("%s is ignored without a reason", f.File)
		}
	}
	if diff := cmp.Diff(agent, check); diff != "" {
		t.Errorf("agent and check differ:\n%s", diff)
	}
	want := map[string]string{
		"c2": "connect", "c3": "connect", "link": "connect", "broken": "fail", "loop": "fail", "C2": "ignore", "OWN": "ignore",
		"own": "ignore", "Bad_Name": "ignore", "ca.crt": "ignore", "empty": "ignore", "huge": "ignore", "dangling": "ignore", "..data": "ignore",
	}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Error(diff)
	}
	if r.Errors != 5 || r.Warnings != 0 || r.Notes != 3 {
		t.Errorf("%d errors, %d warnings, %d notes: %+v", r.Errors, r.Warnings, r.Notes, r.Files)
	}
	for name, want := range map[string][]found{
		"c3":       {{codes.SameContents, "the same contents as c2"}},
		"own":      {{codes.OwnClusterFile, "the name of the own cluster"}},
		"loop":     {{codes.ClientFileUnreadable, "too many levels"}},
		"Bad_Name": {{codes.ClientFileMisnamed, "no valid cluster name"}},
		"C2":       {{codes.NamesDifferInCase, "there is a cluster c2 too"}},
		"OWN":      {{codes.NamesDifferInCase, "there is a cluster own too"}},
	} {
		wantFindings(t, r.of(t, name).Findings, want)
	}
}

// checkForbidden: who runs the test may be root, who may read everything.
func checkForbidden(t *testing.T, all *gathered) {
	denied := &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}
	e := clustermesh.Entry{Name: "c2", Path: "/mesh/c2", Verdict: clustermesh.EntryUnreadable, Reason: denied}
	f := examined(e, "own", time.Now())
	all.add(&Report{Files: []File{f}})
	wantFindings(t, f.Findings, []found{{codes.FileForbidden, "permission denied"}})
	if f.Verdict != WouldFail || f.Cluster != "c2" || f.ContentHash != "" {
		t.Errorf("%+v", f)
	}
}

func TestWithoutADirectory(t *testing.T) {
	t.Parallel()
	if _, err := Directory(filepath.Join(t.TempDir(), "nope"), "own", time.Now()); err == nil || !strings.Contains(err.Error(), "mesh directory") {
		t.Error(err)
	}
}
