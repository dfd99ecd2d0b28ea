package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// fields are the options of a client file that this package uses itself.
type fields struct {
	Endpoints             []string `json:"endpoints"`
	InsecureTransport     bool     `json:"insecure-transport"`
	InsecureSkipTLSVerify bool     `json:"insecure-skip-tls-verify"`
	Username              string   `json:"username"`
	Password              string   `json:"password"`
	named
}

// optionKind is the type of the value of an option.
type optionKind string

const (
	kindString   optionKind = "a string"
	kindBool     optionKind = "true or false"
	kindStrings  optionKind = "a list of strings"
	kindNumber   optionKind = "a number"
	kindCount    optionKind = "a whole number, not negative"
	kindDuration optionKind = "a whole number of nanoseconds"
	kindAliases  optionKind = "a list of host aliases"
)

// fileOption is an option that a client file may contain.
type fileOption struct {
	optionKind
	secret bool
}

// fileOptions returns etcd's options (client/v3/yaml and client/v3.Config) and Cilium's option, by
// their names in lower case: etcd ignores case.
func fileOptions() map[string]fileOption {
	return map[string]fileOption{
		"endpoints":                {optionKind: kindStrings},
		"insecure-transport":       {optionKind: kindBool},
		"insecure-skip-tls-verify": {optionKind: kindBool},
		"cert-file":                {optionKind: kindString},
		"key-file":                 {optionKind: kindString},
		"trusted-ca-file":          {optionKind: kindString},
		"ca-file":                  {optionKind: kindString}, // an old name, which etcd ignores
		"username":                 {optionKind: kindString},
		"password":                 {kindString, true},
		"token":                    {kindString, true},
		"auto-sync-interval":       {optionKind: kindDuration},
		"dial-timeout":             {optionKind: kindDuration},
		"dial-keep-alive-time":     {optionKind: kindDuration},
		"dial-keep-alive-timeout":  {optionKind: kindDuration},
		"reject-old-cluster":       {optionKind: kindBool},
		"permit-without-stream":    {optionKind: kindBool},
		"max-unary-retries":        {optionKind: kindCount},
		"backoff-wait-between":     {optionKind: kindDuration},
		"backoff-jitter-fraction":  {optionKind: kindNumber},
		"maxcallsendmsgsize":       {optionKind: kindCount},
		"maxcallrecvmsgsize":       {optionKind: kindCount},
		HostAliasesKey:             {optionKind: kindAliases},
	}
}

// parseFields reads a client file and checks every option, but does not read the files that it
// names. When values have wrong types, readable is false.
func parseFields(content []byte) (f fields, problems []error, readable bool) {
	text, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return f, []error{&problem{codes.ClientFileNoYAML, err}}, false
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return f, []error{problemf(codes.ClientFileNoYAML, "it is not a mapping of options to values")}, false
	}
	misfit := false // if true, the values cannot be read
	options := fileOptions()
	for key, value := range raw {
		o, known := options[strings.ToLower(key)]
		switch {
		case !known:
			problems = append(problems, problemf(codes.ClientFileOption, "%s: unknown option", Redact(key)))
		case !o.fits(value):
			misfit = true
			shown := Redact(string(value))
			if o.secret {
				shown = "its value"
			}
			problems = append(problems, problemf(codes.ClientFileOption, "%s: %s is not %s", key, shown, o.optionKind))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if misfit {
		return f, problems, false
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, append(problems, &problem{codes.ClientFileOption, err}), false
	}
	f.Endpoints = withoutUser(f.Endpoints)
	return f, append(problems, f.check()...), true
}

func (k optionKind) fits(value json.RawMessage) bool {
	if bytes.Equal(value, []byte("null")) {
		return true
	}
	var to any
	switch k {
	case kindString:
		to = new(string)
	case kindBool:
		to = new(bool)
	case kindStrings:
		to = new([]string)
	case kindNumber:
		to = new(float64)
	case kindCount, kindDuration:
		n, err := strconv.ParseInt(string(value), 10, 64)
		return err == nil && n >= 0
	default:
		return true // checked by its own parser
	}
	return json.Unmarshal(value, to) == nil
}

// CheckEndpoint returns the problem of an endpoint, if any. It accepts the endpoints that etcd's
// client can use: http, https, unix and unixs URLs, and host:port.
func CheckEndpoint(ep string) error {
	if strings.HasPrefix(ep, "unix:") || strings.HasPrefix(ep, "unixs:") {
		return nil
	}
	hostPort := ep
	if strings.Contains(ep, "://") {
		u, err := url.Parse(ep)
		if err != nil {
			var wrong *url.Error // has the endpoint, which may have a password
			if errors.As(err, &wrong) {
				err = wrong.Err
			}
			return err
		}
		switch {
		case u.Scheme != "http" && u.Scheme != "https":
			return fmt.Errorf("the scheme %q is not http, https, unix or unixs", u.Scheme)
		case u.Path != "" && u.Path != "/":
			return fmt.Errorf("the path %q is not wanted", u.Path)
		}
		hostPort = u.Host
	}
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return errors.New("it must be a URL with host and port, such as https://c2.mesh.cilium.io:2379")
	}
	if host == "" {
		return errors.New("the host is missing")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q is not a port number", port)
	}
	return nil
}

// maxFile bounds the size of each file of a configuration, in bytes.
const maxFile = 1 << 20

// readFile reads a client file, a certificate or a key: a regular file of at most maxFile bytes. It refuses
// pipes, devices and other files, because a read of them could block the caller.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, too many for a client file, certificate or key", path, info.Size())
	}
	return os.ReadFile(path)
}

// HostAliasesKey is the option of a client file that maps host names to addresses.
const HostAliasesKey = "cilium-host-aliases"

// HostAlias maps a host name to addresses, only for one client file.
type HostAlias struct {
	Hostname string       `json:"hostname"`
	IPs      []netip.Addr `json:"ips"`
}

// parseHostAliases reads Cilium's extension of a client file and ignores everything else in it.
func parseHostAliases(content []byte) ([]HostAlias, error) {
	var file struct {
		Aliases []HostAlias `json:"cilium-host-aliases"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		code := codes.ClientFileOption
		if yaml.Unmarshal(content, new(map[string]any)) != nil {
			code = codes.ClientFileNoYAML
		}
		return nil, problemf(code, "failed to parse config file: %w", err)
	}
	seen := make(map[string]bool)
	for _, a := range file.Aliases {
		switch {
		case a.Hostname == "":
			return nil, problemf(codes.ClientFileOption, "failed to parse config file: %s entry has an empty hostname", HostAliasesKey)
		case len(a.IPs) == 0:
			return nil, problemf(codes.ClientFileOption, "failed to parse config file: %s entry for hostname %q has no IPs", HostAliasesKey, a.Hostname)
		case seen[a.Hostname]:
			return nil, problemf(codes.ClientFileOption, "failed to parse config file: %s has duplicate hostname %q", HostAliasesKey, a.Hostname)
		}
		seen[a.Hostname] = true
	}
	return file.Aliases, nil
}
