package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestHostNames: the names of the flag, and those of Services if other machines may reach the listener.
func TestHostNames(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                  "[]",
		"--listen-names=a.example,.b":       "[a.example .b]",
		"--listen-insecure":                 "[.svc .svc.cluster.local]",
		"--listen-insecure --listen-names=": "[.svc .svc.cluster.local]",
		"--tls-cert-file=c --tls-key-file=k --listen-names=n": "[n .svc .svc.cluster.local]",
		"--listen-names=*.example":                            "no name of a host",
		"--listen-names=a:80":                                 "no name of a host",
		"--listen-names=a,,b":                                 "no name of a host",
		"--listen-names=.":                                    "no name of a host",
	} {
		c, err := loadSettings(t, nil, strings.Fields(args)...)
		if err == nil {
			err = errors.New(fmt.Sprint(c.HostNames))
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", args, err, want)
		}
	}
}

// TestWhereXDSMayListen: like the API, it is not opened to other machines in plain text by accident.
func TestWhereXDSMayListen(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--xds=127.0.0.1:9980":                           "",
		"--xds=unix:/run/x.sock":                         "",
		"--xds=0.0.0.0:9980 --listen-insecure":           "",
		"--xds=:9980 --tls-cert-file=c --tls-key-file=k": "",
		"--xds=0.0.0.0:9980":                             "may be reached by other machines",
		"--xds=unix:":                                    "the path of a socket",
		"--xds=9980":                                     "no address with a port",
		"--xds-outlier-detection=10s":                    "",
		"--xds-outlier-detection=1ms":                    "not 0, nor within 100ms and 1h",
		"--xds-outlier-detection=-1s":                    "--xds-outlier-detection",
		"--xds-max-names=0":                              "--xds-max-names",
		"--xds-max-streams=0":                            "--xds-max-streams",
		"--xds-max-memory=1Mi":                           "--xds-max-memory",
		"--xds-max-memory=x":                             "--xds-max-memory",
	} {
		_, err := loadSettings(t, nil, strings.Fields(args)...)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", args, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, not %q", args, err, want)
		}
	}
}
