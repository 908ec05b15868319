package peer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A muteEngine answers nothing, as one does none of whose servers leads.
type muteEngine struct{ replicas.Engine }

func (muteEngine) TellFor(ctx context.Context, _ string, _ []byte) error {
	select {
	case <-ctx.Done():
	case <-time.After(replicas.Heartbeat): // its own patience
	}
	return replicas.ErrAway
}

// Who asks for a heartbeat hears that the engine does not answer while it waits for that: it takes
// no answer for a replica that may take what it holds.
func TestBeatAtAMuteEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Options{Engine: muteEngine{replicastest.Alone(edge)}, Keys: []string{testKey}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		begun, w := time.Now(), httptest.NewRecorder()
		g.ServeBeat(w, httptest.NewRequestWithContext(t.Context(), "POST", BeatPath, strings.NewReader("{}")), &Envelope{From: "BBBBBBBB"})
		if took := time.Since(begun); took > replicas.Heartbeat*3/4 || w.Header().Get(engineHeader) != engineAway {
			t.Errorf("the answer is %d %v after %v, want %s: %s within %v", w.Code, w.Header(), took, engineHeader, engineAway, replicas.Heartbeat*3/4)
		}
	})
}

// A scribe is the engine of a replica that is asked to write heartbeats.
type scribe struct {
	replicas.Engine
	says error
	from string
	text string
}

func (s *scribe) TellFor(_ context.Context, instance string, record []byte) error {
	s.from, s.text = instance, string(record)
	return s.says
}

// Who can't write another replica's heartbeat says whom it knows: one of them may hear the engine.
func TestTellingWhomOneKnows(t *testing.T) {
	for name, tt := range map[string]struct {
		says   error
		away   bool
		header string
		knows  []string
	}{
		"written":            {says: nil},
		"refused":            {says: errors.New("not yours")},
		"away":               {says: &replicas.AwayError{Knows: []string{"BBBBBBBB", "CCCCCCCC"}, Err: replicas.ErrAway}, away: true, header: "BBBBBBBB,CCCCCCCC", knows: []string{"BBBBBBBB", "CCCCCCCC"}},
		"away, one alone":    {says: &replicas.AwayError{Knows: []string{"BBBBBBBB"}, Err: replicas.ErrAway}, away: true, header: "BBBBBBBB", knows: []string{"BBBBBBBB"}},
		"away, as before":    {says: replicas.ErrAway, away: true},
		"away, knows no one": {says: &replicas.AwayError{Err: replicas.ErrAway}, away: true},
	} {
		t.Run(name, func(t *testing.T) {
			engine := &scribe{says: tt.says}
			var header http.Header
			var g *Group
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				e, err := g.Open(r)
				if err != nil {
					Refuse(w, err)
					return
				}
				if r.URL.Path == HelloPath {
					g.ServeHello(w, r, e)
					return
				}
				g.ServeBeat(w, r, e)
				header = w.Header().Clone()
			}))
			to := replicas.Replica{Instance: holder.Instance, Addr: s.Listener.Addr().String()}
			engine.Engine = replicastest.Alone(to)
			g = begin(t, s, engine)
			err := newGroup(t, edge, testKey).Tell(t.Context(), to, []byte("record"))
			if engine.from != edge.Instance || engine.text != "record" {
				t.Errorf("it was asked to write %q of %q", engine.text, engine.from)
			}
			if (err == nil) != (tt.says == nil) || errors.Is(err, replicas.ErrAway) != tt.away {
				t.Errorf("Tell = %v, want what the other says: %v", err, tt.says)
			}
			s.Close() // which waits for the handler
			if got := header.Get("Mcpbridge-Replicas"); got != tt.header {
				t.Errorf("Mcpbridge-Replicas: %q, want %q", got, tt.header)
			}
			away := (*replicas.AwayError)(nil)
			if errors.As(err, &away) != tt.away || tt.away && !slices.Equal(away.Knows, tt.knows) {
				t.Errorf("Tell = %#v, want that the other knows %q", err, tt.knows)
			}
		})
	}
}

// A ledger is the engine of a replica that is asked what it holds.
type ledger struct {
	replicas.Engine
	epoch uint64
	err   error
	key   string
}

func (l *ledger) Holds(key string) (uint64, error) {
	l.key = key
	return l.epoch, l.err
}

// Only what a replica says of a claim is an answer: one that does not know the question, or can't tell,
// has not said that it does not hold it.
func TestAskingWhatOneHolds(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	says := func(status int, epoch string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if epoch != "" {
				w.Header().Set("Mcpbridge-Epoch", epoch)
			}
			w.WriteHeader(status)
		}
	}
	for name, tt := range map[string]struct {
		engine  ledger
		instead http.HandlerFunc // of ServeHolds
		epoch   uint64
		fails   bool
	}{
		"it holds it":           {engine: ledger{epoch: 7}, epoch: 7},
		"it does not":           {engine: ledger{}},
		"it can't tell":         {engine: ledger{err: errors.New("about to take it")}, fails: true},
		"the path is unknown":   {instead: http.NotFound, fails: true},
		"another status":        {instead: says(http.StatusServiceUnavailable, "0"), fails: true},
		"no epoch":              {instead: says(http.StatusNoContent, ""), fails: true},
		"an epoch that is none": {instead: says(http.StatusNoContent, "no"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			engine := &tt.engine
			var g *Group
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				e, err := g.Open(r)
				switch {
				case err != nil:
					Refuse(w, err)
				case r.URL.Path == HelloPath:
					g.ServeHello(w, r, e)
				case tt.instead != nil:
					tt.instead(w, r)
				case r.URL.Path == HoldsPath && e.From == edge.Instance:
					g.ServeHolds(w, r, e)
				}
			}))
			to := replicas.Replica{Instance: holder.Instance, Addr: s.Listener.Addr().String()}
			engine.Engine = replicastest.Alone(to)
			g = begin(t, s, engine)
			epoch, err := newGroup(t, edge, testKey).Ask(t.Context(), to, key)
			if epoch != tt.epoch || (err != nil) != tt.fails {
				t.Errorf("Ask = %d, %v; want %d, and an error: %v", epoch, err, tt.epoch, tt.fails)
			}
			if tt.instead == nil && engine.key != key {
				t.Errorf("it was asked for %q", engine.key)
			}
		})
	}
}

// begin starts s, which serves the returned Group.
func begin(t *testing.T, s *httptest.Server, engine replicas.Engine) *Group {
	t.Helper()
	g, err := New(Options{Engine: engine, Keys: []string{testKey}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	s.Start()
	t.Cleanup(s.Close)
	return g
}
