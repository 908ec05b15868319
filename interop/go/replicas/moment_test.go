package replicas

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
)

// A moment is whole with as much as the server tells, whenever that comes: less or more of it
// is wrong, also if it comes with the next step.
func TestMoment(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after []time.Duration // when each progress comes
		later int             // progress that comes before the next step
		wrong bool
	}{
		{name: "all with the result", after: []time.Duration{0, 0, 0}},
		{name: "one is late", after: []time.Duration{0, 0, 10 * time.Second}},
		{name: "one is lost", after: []time.Duration{0, 0}, wrong: true},
		{name: "one came twice", after: []time.Duration{0, 0, 0, 0}, wrong: true},
		{name: "one came twice, and late", after: []time.Duration{0, 0, 0}, later: 1, wrong: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &steer.Client{Progress: steer.NewInbox[any](), Messages: steer.NewInbox[any](), Asked: steer.NewInbox[any]()}
				at, m := cell{client: "go-1.8.0"}, moment{want: tally{progress: 3}}
				put := func() { c.Progress.Put(map[string]any{"progress": 1}) }
				for _, after := range tt.after {
					if after == 0 {
						put()
						continue
					}
					time.AfterFunc(after, put)
				}
				m.gather(c, at)
				for range tt.later {
					put()
				}
				m.take(c, at)
				if (m.wrong() != "") != tt.wrong {
					t.Errorf("%q is wrong with %v, want that: %v", m.wrong(), m.with, tt.wrong)
				}
			})
		})
	}
}
