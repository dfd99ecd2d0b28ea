package api

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
)

func TestThePolicyOfACluster(t *testing.T) {
	t.Parallel()
	if toPolicy(nil) != nil {
		t.Error("a policy where there is none")
	}
	for state, want := range map[disconnect.State][2]string{
		disconnect.Keep: {PolicyKeep, ""}, disconnect.Demote: {PolicyDemote, "MESH-1018"}, disconnect.Withdraw: {PolicyWithdraw, "MESH-1019"},
	} {
		p := toPolicy(&disconnect.Outlook{State: state})
		if p.State != want[0] || p.Code != want[1] || p.Next != "" || p.NextAt != nil || p.Held != nil || p.Evidence.Confirmed != nil {
			t.Errorf("%s: %+v", state, p)
		}
	}
	p := toPolicy(&disconnect.Outlook{Next: disconnect.Withdraw, NextAt: epoch, Held: epoch.Add(time.Second)})
	if p.Next != PolicyWithdraw || !p.NextAt.Equal(epoch) || !p.Held.Equal(epoch.Add(time.Second)) {
		t.Errorf("%+v", p)
	}
}
