package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// fields are the options of a client file that we need ourselves.
type fields struct {
	Endpoints             []string `json:"endpoints"`
	InsecureTransport     bool     `json:"insecure-transport"`
	InsecureSkipTLSVerify bool     `json:"insecure-skip-tls-verify"`
	CertFile              string   `json:"cert-file"`
	KeyFile               string   `json:"key-file"`
	TrustedCAFile         string   `json:"trusted-ca-file"`
	Username              string   `json:"username"`
	Password              string   `json:"password"`
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

// fileOption is what a client file may contain. Names are compared as etcd
// does, ignoring case.
type fileOption struct {
	name string
	kind optionKind
}

// fileOptions are etcd's options (client/v3/yaml and client/v3.Config) and
// Cilium's one.
func fileOptions() []fileOption {
	return []fileOption{
		{"endpoints", kindStrings},
		{"insecure-transport", kindBool},
		{"insecure-skip-tls-verify", kindBool},
		{"cert-file", kindString},
		{"key-file", kindString},
		{"trusted-ca-file", kindString},
		{"ca-file", kindString}, // an old name, which etcd ignores
		{"username", kindString},
		{"password", kindString},
		{"token", kindString},
		{"auto-sync-interval", kindDuration},
		{"dial-timeout", kindDuration},
		{"dial-keep-alive-time", kindDuration},
		{"dial-keep-alive-timeout", kindDuration},
		{"reject-old-cluster", kindBool},
		{"permit-without-stream", kindBool},
		{"max-unary-retries", kindCount},
		{"backoff-wait-between", kindDuration},
		{"backoff-jitter-fraction", kindNumber},
		{"MaxCallSendMsgSize", kindCount},
		{"MaxCallRecvMsgSize", kindCount},
		{HostAliasesKey, kindAliases},
	}
}

// parseFields reads a client file and checks every option that is in it, but no
// file that it names. It is not readable when the options have no values.
func parseFields(content []byte) (f fields, problems []error, readable bool) {
	text, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return f, []error{&problem{codes.ClientFileNoYAML, err}}, false
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return f, []error{problemf(codes.ClientFileNoYAML, "it is not a mapping of options to values")}, false
	}
	misfit := false // then the values cannot be read
	options := fileOptions()
	for key, value := range raw {
		i := slices.IndexFunc(options, func(o fileOption) bool { return strings.EqualFold(o.name, key) })
		if i < 0 {
			problems = append(problems, problemf(codes.ClientFileOption, "%s: unknown option", Redact(key)))
			continue
		}
		if !options[i].kind.fits(value) {
			misfit = true
			problems = append(problems, problemf(codes.ClientFileOption, "%s: %s is not %s", key, shown(options[i], value), options[i].kind))
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

// shown returns a value for an error message, unless it is a secret.
func shown(o fileOption, value json.RawMessage) string {
	if o.secret() {
		return "its value"
	}
	return Redact(string(value))
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

// CheckEndpoint tells what is wrong with an endpoint. It accepts what etcd's client can use: http, https, unix and unixs
// URLs, and host:port.
func CheckEndpoint(ep string) error {
	if strings.HasPrefix(ep, "unix:") || strings.HasPrefix(ep, "unixs:") {
		return nil
	}
	hostPort := ep
	if strings.Contains(ep, "://") {
		u, err := url.Parse(ep)
		if err != nil {
			return err
		}
		if u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("the scheme %q is not http, https, unix or unixs", u.Scheme)
		}
		if u.Path != "" && u.Path != "/" {
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
