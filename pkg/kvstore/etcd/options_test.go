package etcd

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
)

func TestParseOptions(t *testing.T) {
	t.Parallel()
	change := func(f func(*Options)) Options {
		o := DefaultOptions()
		f(&o)
		return o
	}
	for _, c := range []struct {
		name string
		in   map[string]string
		want Options
		errs []string
	}{
		{"nothing gives the defaults of the specification", nil, Options{
			KeepaliveHeartbeat: 15 * time.Second, KeepaliveTimeout: 25 * time.Second,
			QPS: 20, BootstrapQPS: 10000, MaxInflight: 20, PageLimit: 5000, MaxConsecutiveQuorumErrors: 2,
			LeaseTTL: 15 * time.Minute, LockTTL: 25 * time.Second, Timings: DefaultTimings(),
		}, nil},
		{
			"every option",
			map[string]string{
				"etcd.config": "/etc/etcd.yaml", "etcd.address": "http://a:1, b:2", "etcd.keepaliveHeartbeat": "20s",
				"etcd.keepaliveTimeout": "1m", "etcd.qps": "0", "etcd.bootstrapQps": "7", "etcd.maxInflight": "8", "etcd.limit": "256",
			},
			change(func(o *Options) {
				o.ConfigPath, o.Addresses = "/etc/etcd.yaml", []string{"http://a:1", "b:2"}
				o.KeepaliveHeartbeat, o.KeepaliveTimeout = 20*time.Second, time.Minute
				o.QPS, o.BootstrapQPS, o.MaxInflight, o.PageLimit = 0, 7, 8, 256
			}), nil,
		},
		{
			"all mistakes at once",
			map[string]string{
				"etcd.qps": "-1", "etcd.limit": "many", "etcd.keepaliveTimeout": "0s", "etcd.keepaliveHeartbeat": "5",
				"etcd.address": "nowhere", "etcd.foo": "x", "etcd.maxInflight": "99999999999",
			},
			DefaultOptions(),
			[]string{
				`etcd.qps="-1"`, `etcd.limit="many"`, `etcd.keepaliveTimeout="0s"`, `etcd.keepaliveHeartbeat="5"`,
				`etcd.address="nowhere"`, `"etcd.foo": unknown`, `etcd.maxInflight="99999999999"`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseOptions(c.in)
			if c.errs == nil && err != nil {
				t.Fatal(err)
			}
			if c.errs != nil {
				kvtest.Contains(t, err, c.errs...)
				return
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Options{}, "ClusterSize", "Dial", "Leases", "Log", "Metrics", "receive")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOptionsConfig(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "etcd.yaml", "endpoints: [\"http://file:1\"]\nusername: u\npassword: p\n")
	for _, c := range []struct {
		name string
		o    Options
		want string
		err  bool
	}{
		{"neither", Options{}, "", false},
		{"addresses", Options{Addresses: []string{"http://a:1", "http://b:1"}}, "http://a:1,http://b:1", false},
		{"file", Options{ConfigPath: file}, file + " http://file:1", false},
		{"both", Options{ConfigPath: file, Addresses: []string{"http://a:1"}}, file + " http://a:1", false},
		{"absent file", Options{ConfigPath: file + ".absent"}, "", true},
		{"bad address", Options{Addresses: []string{"a"}}, "", true},
		{"bad address for a file", Options{ConfigPath: file, Addresses: []string{"a"}}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := c.o.Config()
			if (err != nil) != c.err {
				t.Fatal(err)
			}
			if cfg == nil {
				if c.want != "" {
					t.Error("no configuration")
				}
				return
			}
			if cfg.String() != c.want {
				t.Errorf("%s, want %s", cfg, c.want)
			}
			var ec clientv3.Config
			if err := cfg.Decode(&ec); err != nil || (c.o.ConfigPath != "") != (ec.Username == "u") {
				t.Error("the user of the file is lost")
			}
		})
	}
}

func TestEndpointsHaveAPartInTheHash(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "etcd.yaml", "endpoints: [\"http://file:1\"]\n")
	seen := map[[32]byte]string{{}: "none"}
	for name, o := range map[string]Options{
		"the file": {ConfigPath: file}, "another endpoint": {ConfigPath: file, Addresses: []string{"http://a:1"}},
		"an address": {Addresses: []string{"http://a:1"}}, "another": {Addresses: []string{"http://b:1"}},
		"both": {Addresses: []string{"http://a:1", "http://b:1"}},
	} {
		cfg, err := o.Config()
		if err != nil || !o.HasLocal() {
			t.Fatal(name, err)
		}
		if other, taken := seen[cfg.Hash]; taken {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[cfg.Hash] = name
		if again, err := o.Config(); err != nil || again.Hash != cfg.Hash {
			t.Errorf("%s: the hash is another one the next time", name)
		}
	}
	if DefaultOptions().HasLocal() {
		t.Error("the defaults name a local kvstore")
	}
}

func TestCheckLeaseTTL(t *testing.T) {
	t.Parallel()
	for d, ok := range map[time.Duration]bool{
		25 * time.Second: true, 15 * time.Minute: true, 24 * time.Hour: true,
		24 * time.Second: false, 25*time.Hour + 1: false, 24*time.Hour + time.Second: false, 25500 * time.Millisecond: false, 0: false,
	} {
		if err := CheckLeaseTTL(d); (err == nil) != ok {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// FuzzParseOptions: accepted values are within their limits, and the error about others names the option.
func FuzzParseOptions(f *testing.F) {
	for option, value := range map[string]string{
		"etcd.address": "http://127.0.0.1:1, b:2", "etcd.config": "/x", "etcd.qps": "100", "etcd.bootstrapQps": "0",
		"etcd.maxInflight": "-1", "etcd.limit": "2147483648", "etcd.keepaliveHeartbeat": "15s", "etcd.keepaliveTimeout": "0", "etcd.nope": "1",
	} {
		f.Add(option, value)
	}
	f.Fuzz(func(t *testing.T, option, value string) {
		o, err := ParseOptions(map[string]string{option: value})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "kvstore option ") {
				t.Fatalf("the option is not named: %v", err)
			}
			return
		}
		if o.QPS < 0 || o.BootstrapQPS < 0 || o.MaxInflight < 0 || o.PageLimit < 0 || o.KeepaliveHeartbeat <= 0 || o.KeepaliveTimeout <= 0 {
			t.Fatalf("%+v", o)
		}
		for _, a := range o.Addresses {
			if err := clientfile.CheckEndpoint(a); err != nil {
				t.Fatalf("%q is accepted: %v", a, err)
			}
		}
	})
}
