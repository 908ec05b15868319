package overview

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// What an engine has heard is told, of very many claims the first, and since when it is away.
func TestReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := replicastest.New()
		one, two := broker.Join(t, "one", "10.0.0.1:7"), broker.Join(t, "two", "10.0.0.2:7")
		two.Update(replicas.Replica{Instance: "two", Addr: "10.0.0.2:7", Draining: true})
		claim := func(e replicas.Engine, name string) {
			if _, err := e.Claim(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		claim(one, "p")
		time.Sleep(time.Minute)
		wantJSON(t, Replicas(one), `{"self":"one","members":[{"instance":"one","addr":"10.0.0.1:7","version":"test"},{"instance":"two","addr":"10.0.0.2:7","draining":true}],"claims":[{"key":"`+replicas.Key("p")+`","holder":"one","epoch":1}]}`)
		for i := range status.MaxClaims + 1 {
			claim(one, fmt.Sprint(i))
		}
		if got := Replicas(one); len(got.Claims) != status.MaxClaims || got.ClaimsLeft != 2 {
			t.Errorf("%d claims are told of, and %d are left; want %d and 2", len(got.Claims), got.ClaimsLeft, status.MaxClaims)
		}
		if got := Replicas(one).Away; !got.IsZero() {
			t.Errorf("the engine is away since %v", got)
		}
		began := time.Now()
		one.SetAway(true)
		time.Sleep(time.Hour)
		if got := Replicas(one).Away.Sub(began); got.Abs() > time.Minute {
			t.Errorf("the engine is away since %v after it was, want about then", got)
		}
	})
}

// An engine that does not tell what it wants has an empty list of claims.
func TestReplicasWithoutClaims(t *testing.T) {
	wantJSON(t, Replicas(replicastest.Alone(replicas.Replica{Instance: "one"})), `{"self":"one","members":[{"instance":"one","addr":""}],"claims":[]}`)
}
