package gateway

import (
	"slices"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
)

// An ownDiary writes down the requests of the gateway's own.
type ownDiary struct {
	mu      sync.Mutex
	methods []string
}

func (d *ownDiary) Begin(*trace.Request) trace.Record    { return nil }
func (d *ownDiary) BeginOwn(*trace.Request) trace.Record { return d }
func (d *ownDiary) Upstream(*trace.Exchange)             {}
func (d *ownDiary) Event(trace.Event)                    {}
func (d *ownDiary) Follows(trace.Record)                 {}
func (d *ownDiary) End(*trace.Request)                   {}

func (d *ownDiary) Answered(x *trace.Exchange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := x.Outcome()
	if d.methods = append(d.methods, x.Server+" "+x.Era+" "+x.Method); err != nil {
		d.methods[len(d.methods)-1] += ": " + err.Error()
	}
}

func (d *ownDiary) has(line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.methods, line)
}

// The probe of a server and the handshake with it are told of; calls of clients are not.
func TestOwnRequestsAreObserved(t *testing.T) {
	a, d := &shelf{text: "of a"}, &ownDiary{}
	o := Options{Servers: []ServerOptions{{Name: "a", Handler: a}}}
	o.hooks.Observers = trace.New(d)
	r := run(t, o)
	r.wantCall("a", "of a")
	for _, line := range []string{"a modern server/discover: Method not found (code -32601)", "a legacy initialize"} {
		until(t, line, func() bool { return d.has(line) })
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(d.methods, func(line string) bool { return line == "a legacy tools/call" }) {
		t.Errorf("told of %q", d.methods)
	}
}
