package wire

import (
	"encoding/json"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLabelsOfAnExportAreToldApartByCase(t *testing.T) {
	t.Parallel()
	const rest = `"cluster":"cluster2","namespace":"ns","name":"svc",` +
		`"exportCreationTimestamp":"2026-03-04T05:06:07Z","type":"Headless","sessionAffinity":"None"}`
	for name, c := range map[string]struct {
		fields string
		want   map[string]string
	}{
		"lower case wins":              {`{"labels":{"a":"1"},"Labels":{"b":"2"},`, map[string]string{"a": "1"}},
		"the order does not matter":    {`{"Labels":{"b":"2"},"labels":{"a":"1"},`, map[string]string{"a": "1"}},
		"null gives way":               {`{"labels":null,"Labels":{"b":"2"},`, map[string]string{"b": "2"}},
		"another spelling is unknown":  {`{"LABELS":{"c":"3"},`, nil},
		"another spelling may be junk": {`{"LABELS":5,"labels":{"a":"1"},`, map[string]string{"a": "1"}},
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
	for _, fields := range []string{`{"labels":5,`, `{"Annotations":{"a":1},`} {
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
