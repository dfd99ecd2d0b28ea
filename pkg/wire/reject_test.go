package wire

import (
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestLabelsOfAnExportDifferByCase(t *testing.T) {
	t.Parallel()
	const rest = `"cluster":"cluster2","namespace":"ns","name":"svc",` +
		`"exportCreationTimestamp":"2026-03-04T05:06:07Z","type":"Headless","sessionAffinity":"None"}`
	for name, c := range map[string]struct {
		fields string
		want   map[string]string
	}{
		"lower case wins":                       {`{"labels":{"a":"1"},"Labels":{"b":"2"},`, map[string]string{"a": "1"}},
		"the order does not matter":             {`{"Labels":{"b":"2"},"labels":{"a":"1"},`, map[string]string{"a": "1"}},
		"null gives way":                        {`{"labels":null,"Labels":{"b":"2"},`, map[string]string{"b": "2"}},
		"another spelling counts as lower case": {`{"LABELS":{"c":"3"},"Labels":{"b":"2"},`, map[string]string{"c": "3"}},
	} {
		s, err := DecodeServiceExport("ns/svc", []byte(c.fields+rest), cluster2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(c.want, s.Labels); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for _, fields := range []string{
		`{"labels":5,`,
		`{"Annotations":{"a":1},`,
		`{"labels":{"a":"1"},"Labels":5,`, // a field that is not kept is checked, too
		`{"labels":{"a":"1"},"LABELS":5,`,
		`{"labels":5,"labels":{"a":"1"},`,
		`{"exportCreationTimestamp":"yesterday",`,
	} {
		_, err := DecodeServiceExport("ns/svc", []byte(fields+rest), cluster2)
		if r := checkRejected(t, err); r.Reason != ReasonMalformed {
			t.Errorf("%s: %v", fields, err)
		}
	}
}

func TestARejectionNamesReasonAndCause(t *testing.T) {
	t.Parallel()
	_, err := DecodeNode("n", []byte("{"), cluster2)
	same(t, "text", err.Error(), "malformed: unexpected end of JSON input")
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		t.Errorf("%v does not wrap its cause", err)
	}
}

func TestAnUnknownClusterIDIsNotCompared(t *testing.T) {
	t.Parallel()
	e := Expect{Cluster: "cluster2"}
	if _, err := DecodeNode("n", []byte(`{"Name":"n","Cluster":"cluster2","ClusterID":7}`), e); err != nil {
		t.Error(err)
	}
	if _, err := DecodeIP("10.0.0.1", []byte(`{"IP":"10.0.0.1","ID":7777777}`), e); err != nil {
		t.Error(err)
	}
	if _, err := DecodeIdentityName("7777777", e); err != nil {
		t.Error(err)
	}
}

func TestAValueThatCannotBeWrittenPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("an address of 3 bytes was written")
		}
	}()
	(&Node{IPv4HealthIP: net.IP{1, 2, 3}}).Encode()
}

func TestValuesBesideTheVectorsAreRejected(t *testing.T) {
	t.Parallel()
	export := func(field string) []byte {
		return []byte(`{"cluster":"cluster2","namespace":"ns","name":"svc","type":"Headless","sessionAffinity":"None",` + field + `}`)
	}
	for name, c := range map[string]struct {
		value  []byte
		reason Reason
	}{
		"a time that is none":     {export(`"exportCreationTimestamp":"today"`), ReasonMalformed},
		"a time that is a number": {export(`"exportCreationTimestamp":5`), ReasonMalformed},
		"an empty policy":         {export(`"exportCreationTimestamp":"2026-03-04T05:06:07Z","internalTrafficPolicy":""`), ReasonValue},
		"no cluster":              {[]byte(`{"cluster":"","namespace":"ns","name":"svc"}`), ReasonMissing},
	} {
		_, err := DecodeServiceExport("ns/svc", c.value, cluster2)
		if r := checkRejected(t, err); r.Reason != c.reason {
			t.Errorf("%s: %v, want the reason %s", name, err, c.reason)
		}
	}
	slice := &EndpointSlice{Cluster: "cluster2", Namespace: "ns", Name: "x", AddressType: AddressTypeIPv4}
	if _, err := DecodeEndpointSlice("ns/x", slice.Encode(), cluster2); checkRejected(t, err).Reason != ReasonClusterID {
		t.Errorf("a slice without a cluster ID: %v", err)
	}
}

// TestTheErrorOfAServiceIsDeterministic: a service with several bad addresses always gives the same error.
func TestTheErrorOfAServiceIsDeterministic(t *testing.T) {
	t.Parallel()
	value := []byte(`{"cluster":"cluster2","namespace":"ns","name":"svc","clusterID":2,` +
		`"backends":{"c":{},"b":{},"a":{},"10.0.0.1":{}}}`)
	for range 20 {
		_, err := DecodeService("ns/svc", value, cluster2)
		same(t, "error", err.Error(), `address: ParseAddr("a"): unable to parse IP`)
	}
}

func TestALocalClusterThatIsInvalidCanJudgeNoOther(t *testing.T) {
	t.Parallel()
	if err := (ClusterConfig{ID: 2}).Validate(ClusterInfo{Name: "c1", ID: 1}); err == nil {
		t.Error("accepted")
	}
	if err := (ClusterInfo{Name: "c1", ID: 1}).ValidateStrict(); err == nil {
		t.Error("accepted")
	}
}

func TestARejectionDoesNotQuoteEverything(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\u00e9", 1000)
	_, err := DecodeNode("n", []byte(`{"Name":"`+long+`","Cluster":"cluster2","ClusterID":2}`), cluster2)
	if text := err.Error(); len(text) > maxErrorText+3 || !utf8.ValidString(text) {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
