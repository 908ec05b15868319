package detect

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// An eraBack is a back that only tells its era.
type eraBack struct {
	era             spec.Era
	started, closed atomic.Int32
	// How often it was told of changed roots, of levels, and of clients that left.
	roots, levels, left atomic.Int32
}

func (b *eraBack) RootsChanged(*mcp.Request) { b.roots.Add(1) }
func (b *eraBack) LevelChanged(*mcp.Request) { b.levels.Add(1) }
func (b *eraBack) ClientLeft(*mcp.Request)   { b.left.Add(1) }

func (b *eraBack) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return mcp.NewResult([]byte(`{"era":"`+b.era.String()+`"}`), nil), nil
}

func (b *eraBack) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return &mcp.Description{Capabilities: []byte(`{}`)}, nil
}

func (b *eraBack) Watch(context.Context, mcp.Profile, []fanout.Topic) ([]fanout.Topic, func(), error) {
	return nil, func() {}, nil
}

func (b *eraBack) Start()                      { b.started.Add(1) }
func (b *eraBack) Era() spec.Era               { return b.era }
func (b *eraBack) Err() error                  { return nil }
func (b *eraBack) Close(context.Context) error { b.closed.Add(1); return nil }

// A scene is a Detector and what its server answers.
type scene struct {
	*Detector
	finding atomic.Pointer[Finding]
	slow    atomic.Int64 // nanoseconds that a probe takes
	probes  atomic.Int32
	opened  []*eraBack // by run alone; read when it waits
}

func newScene(t *testing.T, f Finding) *scene {
	s := &scene{}
	s.finding.Store(&f)
	d, err := New(Options{
		Name: "s",
		Probe: func(ctx context.Context) Finding {
			s.probes.Add(1)
			select {
			case <-time.After(time.Duration(s.slow.Load())):
				return *s.finding.Load()
			case <-ctx.Done():
				return Finding{Why: "silence"}
			}
		},
		Open: func(f Finding) (mcp.Back, error) {
			b := &eraBack{era: f.Era}
			s.opened = append(s.opened, b)
			return b, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Detector = d
	return s
}

func (s *scene) serve(t *testing.T) (string, error) {
	res, err := s.Serve(t.Context(), &mcp.Request{Method: "tools/list"}, nil)
	if err != nil {
		return "", err
	}
	return string(res.Body), nil
}

func TestDetectorServesAsTheProbeFound(t *testing.T) {
	for _, era := range []spec.Era{spec.Legacy, spec.Modern} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, Finding{Era: era, Why: "it said so"})
			defer s.Close(t.Context())
			if s.Era() != spec.Unknown || !errors.Is(s.Err(), mcp.ErrStarting) {
				t.Errorf("before the first probe: era %v, err %v", s.Era(), s.Err())
			}
			if got, err := s.serve(t); got != `{"era":"`+era.String()+`"}` {
				t.Errorf("Serve() = %s, %v, want the back of %v", got, err, era)
			}
			if s.opened[0].started.Load() != 1 {
				t.Error("the back was not started")
			}
		})
	}
}

// What becomes of clients is passed to the back, if there is one.
func TestG14ClientsAreFollowedByTheBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Era: spec.Legacy})
		defer s.Close(t.Context())
		s.RootsChanged(&mcp.Request{})
		s.LevelChanged(&mcp.Request{})
		s.ClientLeft(&mcp.Request{})
		s.Start()
		synctest.Wait()
		s.RootsChanged(&mcp.Request{})
		s.LevelChanged(&mcp.Request{})
		s.ClientLeft(&mcp.Request{})
		if b := s.opened[0]; b.roots.Load() != 1 || b.levels.Load() != 1 || b.left.Load() != 1 {
			t.Errorf("the back was told %d times of roots, %d of levels, %d of clients, want once each", b.roots.Load(), b.levels.Load(), b.left.Load())
		}
	})
}

func TestDetectorWithoutEvidenceKeepsAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Why: "HTTP status 401"})
		defer s.Close(t.Context())
		s.Start()
		synctest.Wait()
		begin := time.Now()
		if _, err := s.serve(t); err == nil || !strings.Contains(err.Error(), "401") || time.Since(begin) > 0 {
			t.Errorf("Serve() = %v after %v, want an error at once that says 401", err, time.Since(begin))
		}
		time.Sleep(10 * time.Minute)
		if n := s.probes.Load(); n < 10 || n > 30 {
			t.Errorf("%d probes in 10 minutes, want some, with pauses that grow to 30 s", n)
		}
		s.finding.Store(&Finding{Era: spec.Modern})
		time.Sleep(time.Minute)
		if s.Era() != spec.Modern {
			t.Errorf("era = %v a minute after the server told, want modern", s.Era())
		}
	})
}

// A server that was down is asked again as soon as a client sends a request, whatever pause the
// probes have reached, but only once for many clients.
func TestM2L05DownIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Why: "connection refused"})
		defer s.Close(t.Context())
		s.Start()
		time.Sleep(10 * time.Minute) // the pauses have grown to half a minute
		before := s.probes.Load()
		for justAsked := true; justAsked; before = s.probes.Load() { // the pauses are random
			time.Sleep(clientPause)
			justAsked = s.probes.Load() != before
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if got, err := s.serve(t); err == nil || !strings.Contains(err.Error(), "connection refused") {
					t.Errorf("Serve() = %s, %v, want that it is down", got, err)
				}
			})
		}
		all.Wait()
		if n := s.probes.Load() - before; n != 1 {
			t.Errorf("%d probes for 100 requests, want 1", n)
		}
		s.finding.Store(&Finding{Era: spec.Legacy})
		time.Sleep(clientPause)
		if got, err := s.serve(t); err != nil {
			t.Errorf("Serve() = %s, %v, want that of the server, which is up", got, err)
		}
	})
}

func TestDetectorTellsThatItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Starting: true})
		s.slow.Store(int64(8 * time.Second))
		defer s.Close(t.Context())
		begin := time.Now()
		_, err := s.Describe(t.Context(), &mcp.Request{})
		if took := time.Since(begin); !errors.Is(err, mcp.ErrStarting) || took != s.opts.Patience || !strings.Contains(err.Error(), "raise timeouts.connect") {
			t.Errorf("Describe() = %v after %v, want ErrStarting after %v, and what to do", err, took, s.opts.Patience)
		}
		s.finding.Store(&Finding{Era: spec.Modern})
		if got, err := s.serve(t); err != nil {
			t.Errorf("Serve() = %s, %v, want it to wait for the verdict", got, err)
		}
	})
}

func TestU02VerdictsAreDated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Era: spec.Legacy})
		defer s.Close(t.Context())
		swapped := make(chan error, 1)
		s.WhenReplaced(func(reason error) { swapped <- reason })
		s.Start()
		time.Sleep(23 * time.Hour)
		if n := s.probes.Load(); n != 1 {
			t.Fatalf("%d probes within the horizon, want 1", n)
		}
		s.finding.Store(&Finding{Era: spec.Modern}) // upgraded in place
		time.Sleep(4 * time.Hour)
		if s.Era() != spec.Modern || s.opened[0].closed.Load() != 1 {
			t.Errorf("after the horizon: era %v, legacy back closed %d times, want modern and once", s.Era(), s.opened[0].closed.Load())
		}
		if reason := <-swapped; !strings.Contains(reason.Error(), "speaks 2026-07-28 (no sessions), not 2025-11-25") {
			t.Errorf("reason = %v", reason)
		}
		time.Sleep(100 * time.Hour)
		if n := s.probes.Load(); n != 2 {
			t.Errorf("%d probes, want 2: a modern verdict has no date", n)
		}
	})
}

func TestU02DoubtAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Era: spec.Modern})
		defer s.Close(t.Context())
		s.Start()
		synctest.Wait()
		s.finding.Store(&Finding{Era: spec.Legacy}) // rolled back
		for range 100 {
			s.Doubt("it answered as only a legacy server does")
		}
		time.Sleep(doubtPauses.Min + time.Second)
		if got, _ := s.serve(t); got != `{"era":"legacy"}` {
			t.Errorf("after a doubt %s serves, want the legacy back", got)
		}
		if n := s.probes.Load(); n != 2 {
			t.Errorf("%d probes after 100 doubts, want 2", n)
		}
	})
}

// A server that gives cause for doubt all the time is not asked all the time; one
// that was calm is asked soon.
func TestU02DoubtsThatChangeNothingAreRarer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Era: spec.Legacy})
		defer s.Close(t.Context())
		s.Start()
		for range 600 {
			s.Doubt("a session was lost")
			time.Sleep(time.Second)
		}
		if n := s.probes.Load(); n < 10 || n > 14 {
			t.Errorf("%d probes in 10 minutes of doubt, want about one a minute", n)
		}
		time.Sleep(3 * doubtPauses.Max)
		s.finding.Store(&Finding{Era: spec.Legacy})
		s.Doubt("calm until now")
		synctest.Wait()
		s.finding.Store(&Finding{Era: spec.Modern}) // upgraded in place
		s.Doubt("a session was lost")
		time.Sleep(doubtPauses.Min + time.Second)
		if s.Era() != spec.Modern {
			t.Errorf("era = %v after %v, want the upgrade noticed", s.Era(), doubtPauses.Min)
		}
	})
}

func TestU02VerdictOutlivesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Era: spec.Legacy})
		defer s.Close(t.Context())
		s.Start()
		synctest.Wait()
		s.finding.Store(&Finding{Why: "connection refused"})
		s.Doubt("a session was lost")
		time.Sleep(time.Hour)
		if got, err := s.serve(t); got != `{"era":"legacy"}` || err != nil {
			t.Errorf("Serve() = %s, %v, want the verdict to stand", got, err)
		}
	})
}

func TestDetectorClosesInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Era: spec.Modern})
		s.slow.Store(int64(time.Hour))
		done := make(chan error)
		go func() { _, err := s.serve(t); done <- err }()
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != mcp.ErrShutdown {
			t.Errorf("Serve() = %v, want %v", err, mcp.ErrShutdown)
		}
	})
}

// A server whose back can't be made is no server that starts.
func TestDetectorSaysThatItCantServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := New(Options{
			Name:  "s",
			Probe: func(context.Context) Finding { return Finding{Era: spec.Legacy} },
			Open:  func(Finding) (mcp.Back, error) { return nil, errors.New("no such thing") },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close(t.Context())
		begun := time.Now()
		_, err = d.Serve(t.Context(), &mcp.Request{Method: spec.MethodToolsList}, nil)
		if err == nil || !strings.Contains(err.Error(), "no such thing") || time.Since(begun) > 0 || d.Err() == nil || d.Err().Error() != "no such thing" {
			t.Errorf("Serve() = %v after %v, Err() = %v, want what prevents it, at once", err, time.Since(begun), d.Err())
		}
	})
}
