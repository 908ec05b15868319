package member_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

// newcomer has a replica of a street begin that none of the others knows.
func newcomer(t *testing.T, b *replicastest.Broker, by *neighbors) *replicastest.Engine {
	t.Helper()
	e := b.Engine(t, member.Options{})
	by.all["dddd"] = e
	e.Meet(&neighbors{self: e, all: by.all})
	if err := e.Member.Join(t.Context(), replicas.Replica{Instance: "dddd", Addr: "10.0.0.4:2528", Version: "test", Revision: replicas.Revision}); err != nil {
		t.Fatal(err)
	}
	return e
}

// A replica that begins just when the engine is back claims nothing that another one may serve without
// a claim, since that has not heard yet that it is.
func TestANewcomerLeavesWhatIsServedWithoutAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, by := street(t)
		pass(t, 5*time.Second)
		b.SetAway(true)
		pass(t, 9950*time.Millisecond) // nobody has a round just after that
		if err := r[0].Inquire(t.Context(), "profile"); err != nil || r[0].Vacant("profile") == 0 {
			t.Fatalf("Inquire = %v, outage %d; want that nobody holds the name", err, r[0].Vacant("profile"))
		}
		b.SetAway(false)
		d := newcomer(t, b, by[0])
		if r[0].Vacant("profile") == 0 {
			t.Fatal("the others have heard the engine before the newcomer: nothing is tried")
		}
		begin := time.Now()
		c, err := d.Claim(t.Context(), "profile")
		if err != nil { // it waits as long as a takeover takes, at most
			c = claim(t, d, "profile")
		}
		if r[0].Vacant("profile") != 0 {
			t.Errorf("%+v, claimed after %v, is served without a claim still", c, time.Since(begin))
		}
		if took := time.Since(begin); took < replicas.Pace(0).Patience() || took > 6*time.Second {
			t.Errorf("the claim took %v, want the whole time that others have promised, which they tell with the first heartbeat", took)
		}
	})
}

// Who has said that the engine is away takes nothing for the whole time; who begins meanwhile does
// neither.
func TestANewcomerKeepsWhatOthersHavePromised(t *testing.T) {
	for name, promised := range map[string]bool{"a promise": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, r, by := street(t)
				pass(t, 5*time.Second)
				if promised {
					b.SetAway(true) // for a moment, in which nobody has a round
					if err := r[1].TellFor(t.Context(), "aaaa", []byte(`{"addr":"10.0.0.1:2528","beat":1000}`)); !errors.Is(err, replicas.ErrAway) {
						t.Fatalf("TellFor = %v while the engine is away, want %v", err, replicas.ErrAway)
					}
					b.SetAway(false)
				}
				pass(t, replicas.Heartbeat)
				begin := time.Now()
				claim(t, newcomer(t, b, by[0]), "profile")
				took, want := time.Since(begin), 3*replicas.Heartbeat/2
				if promised {
					want = replicas.Pace(0).Patience() - replicas.Heartbeat
				}
				if took < want || took > want+replicas.Heartbeat {
					t.Errorf("the first claim of a newcomer took %v, want %v", took, want)
				}
			})
		})
	}
}
