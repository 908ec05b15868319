package detect

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A notepad is a Memory of one record. It is safe for concurrent use, as each Memory is.
type notepad struct {
	// Set by the test, read-only after.
	era    spec.Era
	was    *mcp.Description
	differ []string

	mu    sync.Mutex // guards the fields below
	found []spec.Era
	told  int
}

func (n *notepad) Era() spec.Era                        { return n.era }
func (n *notepad) Recall(*mcp.Request) *mcp.Description { return n.was }

func (n *notepad) Found(era spec.Era) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.found = append(n.found, era)
}

func (n *notepad) Described(*mcp.Request, spec.Era, *mcp.Description) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told++
	return n.differ
}

// stored returns what was stored until now.
func (n *notepad) stored() (found []spec.Era, told int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.found), n.told
}

// A tardyBack describes itself after a while.
type tardyBack struct {
	eraBack
	takes time.Duration
	err   error
	asked atomic.Int32
}

func (b *tardyBack) Describe(ctx context.Context, _ *mcp.Request) (*mcp.Description, error) {
	b.asked.Add(1)
	select {
	case <-time.After(b.takes):
		return &mcp.Description{Capabilities: []byte(`{"tools":{}}`)}, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// published keeps what was published. It is safe for concurrent use.
type published struct {
	mu     sync.Mutex // guards events
	events []fanout.Event
}

func (p *published) Publish(e fanout.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
}

func (p *published) all() []fanout.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}

func (p *published) Wanted(fanout.Topic) bool { return true }
func (p *published) End(fanout.Topic, error)  {}

func TestM2L05RememberedWhileItStarts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		differ  []string
		err     error
		changes int
		after   string // what the next discovery is answered with
	}{
		{"as it was", nil, nil, 0, `{"tools":{}}`},
		{"another by now", []string{"capabilities"}, nil, 3, `{"tools":{}}`},
		{"can't be started", nil, errors.New("exit status 1"), 0, ""},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			memory := &notepad{era: spec.Legacy, was: &mcp.Description{Capabilities: []byte(`{"prompts":{}}`)}, differ: tt.differ}
			back := &tardyBack{eraBack: eraBack{era: spec.Legacy}, takes: 9 * time.Second, err: tt.err}
			changes := &published{}
			d, err := New(Options{
				Name: "s", Memory: memory, Changes: changes,
				Probe: func(context.Context) Finding { t.Error("it was asked its era"); return Finding{} },
				Open:  func(Finding) (mcp.Back, error) { return back, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close(t.Context())
			d.Start()
			req := &mcp.Request{Method: spec.MethodDiscover, Profile: mcp.Profile{Scope: "s/a"}}
			begun := time.Now()
			for range 2 {
				if got, err := d.Describe(t.Context(), req); err != nil || string(got.Capabilities) != `{"prompts":{}}` || time.Since(begun) > 0 {
					t.Errorf("Describe = %+v, %v after %v, want what is remembered at once", got, err, time.Since(begun))
				}
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if n := back.asked.Load(); n != 1 {
				t.Errorf("the server was asked %d times, want once for both", n)
			}
			if events := changes.all(); len(events) != tt.changes || tt.changes > 0 && events[0].Topic.Scope != "s/a" {
				t.Errorf("published %+v, want %d changes of lists", events, tt.changes)
			}
			got, err := d.Describe(t.Context(), req)
			if text := ""; err == nil {
				if text = string(got.Capabilities); text != tt.after {
					t.Errorf("described as %s later, want %s", text, tt.after)
				}
			} else if tt.after != "" {
				t.Errorf("Describe = %v later", err)
			}
			if _, told := memory.stored(); tt.err == nil && told != 1 {
				t.Errorf("told %d times, want once", told)
			}
		})
	}
}

// A verdict of the newer era is remembered, and asked for all the same.
func TestU02ModernVerdictIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &notepad{era: spec.Modern, was: &mcp.Description{Capabilities: []byte(`{}`)}}
		var probes int
		d, err := New(Options{
			Name: "s", Memory: memory,
			Probe: func(context.Context) Finding {
				probes++
				time.Sleep(time.Second)
				return Finding{Era: spec.Legacy, Why: "it was replaced"}
			},
			Open: func(f Finding) (mcp.Back, error) { return &eraBack{era: f.Era}, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close(t.Context())
		d.Start()
		if got, err := d.Describe(t.Context(), &mcp.Request{}); err != nil || d.Era() != spec.Unknown {
			t.Errorf("Describe = %v, %v as %v, want an answer before the verdict", got, err, d.Era())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if found, _ := memory.stored(); probes != 1 || d.Era() != spec.Legacy || slices.Index(found, spec.Modern) >= 0 || len(found) == 0 {
			t.Errorf("%d probes, era %v, remembered %v, want what the server is by now", probes, d.Era(), found)
		}
	})
}

// Where there is one client its era is taken for the server's, until that refuses.
func TestU01ClientFirst(t *testing.T) {
	for _, tt := range []struct {
		name   string
		client spec.Era
		want   spec.Era
		probes int
	}{
		{"a legacy client", spec.Legacy, spec.Legacy, 0},
		{"a modern client", spec.Modern, spec.Modern, 1},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			var probes int
			d, err := New(Options{
				Name: "s", ClientFirst: true,
				Probe: func(context.Context) Finding { probes++; return Finding{Era: spec.Modern, Why: "it said so"} },
				Open:  func(f Finding) (mcp.Back, error) { return &eraBack{era: f.Era}, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close(t.Context())
			d.Start()
			time.Sleep(time.Minute)
			synctest.Wait()
			if probes != 0 || d.Era() != spec.Unknown {
				t.Errorf("%d probes, era %v before the client has asked", probes, d.Era())
			}
			if _, err := d.Describe(t.Context(), &mcp.Request{Era: tt.client}); err != nil || d.Era() != tt.want {
				t.Errorf("Describe = %v, era %v, want %v", err, d.Era(), tt.want)
			}
			if synctest.Wait(); probes != tt.probes {
				t.Errorf("%d probes, want %d", probes, tt.probes)
			}
		})
	}
}

// A server that fails under its only client is asked again when the client asks again,
// and not in a loop.
func TestClientFirstAsksNoMoreThanTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes int
		d, err := New(Options{
			Name: "s", ClientFirst: true,
			Probe: func(context.Context) Finding { probes++; return Finding{Why: "exit status 1"} },
			Open:  func(f Finding) (mcp.Back, error) { return &eraBack{era: f.Era}, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close(t.Context())
		for n := 1; n <= 3; n++ {
			for range 2 { // the second is too early
				if _, err := d.Describe(t.Context(), &mcp.Request{Era: spec.Modern}); err == nil {
					t.Error("Describe succeeded")
				}
			}
			synctest.Wait()
			if probes != n {
				t.Errorf("%d probes, want %d", probes, n)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A server that was not asked which era it is of, or did not answer, is not remembered.
func TestU02GuessesAreNotRemembered(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   bool // the client is asked first
		finding Finding
		want    int
	}{
		{"its client's era", true, Finding{}, 0},
		{"silence", false, Finding{Era: spec.Legacy, Why: "silence", Guess: true}, 0},
		{"an answer", false, Finding{Era: spec.Legacy, Why: "it refused"}, 2},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			memory := &notepad{}
			d, err := New(Options{
				Name: "s", ClientFirst: tt.first, Memory: memory,
				Probe: func(context.Context) Finding { return tt.finding },
				Open:  func(f Finding) (mcp.Back, error) { return &eraBack{era: f.Era}, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close(t.Context())
			if _, err := d.Describe(t.Context(), &mcp.Request{Era: spec.Legacy}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if found, told := memory.stored(); len(found) != tt.want || told != tt.want/2 {
				t.Errorf("remembered %v, told %d times, want %d and %d", found, told, tt.want, tt.want/2)
			}
		})
	}
}
