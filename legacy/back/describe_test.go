package back

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestM2L05Describe(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Capabilities = `{"tools":{"listChanged":true},"tasks":{},"vendor":{"n":1.0}}`
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	d, err := b.Describe(t.Context(), ask("server/discover", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(d.Capabilities), `{"tools":{"listChanged":true},"vendor":{"n":1.0}}`; got != want {
		t.Errorf("Capabilities = %s, want %s", got, want)
	}
	if string(d.ServerInfo) != legacytest.ServerInfo || string(d.Instructions) != `"be kind"` {
		t.Errorf("Describe = %s, %s", d.ServerInfo, d.Instructions)
	}
}

// Nothing is made up for a server that said nothing.
func TestM2L05NothingInvented(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"protocolVersion":"2025-03-26"}`)
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	d, err := b.Describe(t.Context(), ask("server/discover", ""))
	if err != nil {
		t.Fatal(err)
	}
	if string(d.Capabilities) != `{}` || d.ServerInfo != nil || d.Instructions != nil {
		t.Errorf("Describe = %s, %s, %s, want nothing", d.Capabilities, d.ServerInfo, d.Instructions)
	}
}

func TestM2L05WaitsForAStartingServer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start time.Duration
		ok    bool
		took  time.Duration
	}{
		{"slow", 9 * time.Second, true, 9 * time.Second},
		{"slower than timeouts.connect", 11 * time.Second, false, 10 * time.Second},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			b, peers := pipeBack(t, Options{})
			go func() {
				p := <-peers
				m := p.Want("initialize")
				if time.Sleep(tt.start); !tt.ok {
					return
				}
				p.Result(m.ID, legacytest.InitializeResult("2025-11-25", legacytest.Everything))
				p.Want("notifications/initialized")
			}()
			start := time.Now()
			_, err := b.Describe(t.Context(), ask("server/discover", ""))
			time.Sleep(time.Second) // the peer's end
			if took := time.Since(start) - time.Second; took != tt.took || (err == nil) != tt.ok {
				t.Errorf("Describe = %v after %v, want success %v after %v", err, took, tt.ok, tt.took)
			}
			if err != nil && !strings.Contains(err.Error(), "did not finish initialize within timeouts.connect") {
				t.Errorf("Describe = %v", err)
			}
		})
	}
}

// flaky dials a server that may be away.
type flaky struct {
	away  atomic.Bool
	dials atomic.Int32
	t     *testing.T
}

func (f *flaky) dial(context.Context) (transport.Conn, error) {
	f.dials.Add(1)
	if f.away.Load() {
		return nil, errors.New("exec: no such file")
	}
	near, far := transport.NewPipe()
	p := legacytest.NewConnPeer(f.t, far)
	go func() { // ends with the connection
		p.Run()
		_ = far.Close()
	}()
	return near, nil
}

func TestM2L05AwayAndNeverReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{t: t}
		b := newTestBack(t, Options{Dial: f.dial, Options: upstream.Options{Settings: settings.Server{Idle: time.Second}}})
		known, err := b.Describe(t.Context(), ask("server/discover", ""))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the session is gone
		f.away.Store(true)
		for range 3 {
			d, err := b.Describe(t.Context(), ask("server/discover", ""))
			if err != nil || d != known {
				t.Errorf("Describe while away = %v, %v, want the last known answer", d, err)
			}
		}
		other := ask("server/discover", "")
		other.Profile.Scope = "another principal"
		_, err = b.Describe(t.Context(), other)
		for _, part := range []string{`server "scripted"`, "no such file"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("Describe of a server never reached = %v, want it to say %q", err, part)
			}
		}
	})
}

// A server that is down at start is reported once, tried again with growing
// pauses, and reported once when it is there.
func TestServerDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{t: t}
		f.away.Store(true)
		lines := &bridgetest.Logs{}
		b := newTestBack(t, Options{Options: upstream.Options{Logger: slog.New(lines)}, Dial: f.dial})
		if s := b.Snapshot(); s.State != upstream.Starting {
			t.Errorf("State before Start = %v", s.State)
		}
		b.Start()
		time.Sleep(10 * time.Minute)
		if s := b.Snapshot(); s.State != upstream.Down || !strings.Contains(s.Err, "no such file") || s.Description != nil {
			t.Errorf("Snapshot while away = %+v", s)
		}
		if n := f.dials.Load(); n < 15 || n > 40 { // at most 30 s apart, jitter aside
			t.Errorf("%d attempts in 10 minutes", n)
		}
		f.away.Store(false)
		time.Sleep(time.Minute)
		s := b.Snapshot()
		if s.State != upstream.Up || s.Err != "" || s.Description == nil || s.Sessions != 0 {
			t.Errorf("Snapshot when it is back = %+v", s)
		}
		if down, up := lines.Count("server is down, trying again"), lines.Count("server is up"); down != 1 || up != 1 {
			t.Errorf("reported down %d times and up %d times, want once each", down, up)
		}
		// And again, when a request finds it away.
		f.away.Store(true)
		if err := serveOne(t, b, "a"); err == nil {
			t.Error("Serve = nil error while away")
		}
		if s := b.Snapshot(); s.State != upstream.Down {
			t.Errorf("State = %v after a request failed", s.State)
		}
		f.away.Store(false)
		time.Sleep(time.Minute)
		if s := b.Snapshot(); s.State != upstream.Up {
			t.Errorf("State = %v, want the back to have found the server again", s.State)
		}
	})
}
