package upstream

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A server's state follows the attempts to reach it, and each change is logged once, with
// what is wrong in a few words.
func TestAvailability(t *testing.T) {
	refused := errors.New("connection refused")
	for _, tt := range []struct {
		name  string
		err   error
		state State
		log   string // empty if nothing is logged
	}{
		{"up", nil, Up, "server is up"},
		{"a caller's credential", &CredentialError{Err: errors.New("expired"), Caller: true}, Up, "server is up"},
		{"down", refused, Down, "server is down, trying again"},
		{"the gateway's credential", &CredentialError{Err: errors.New("expired")}, Down, "server wants credentials, trying again"},
		{"401", &StatusError{Code: 401}, Down, "server wants credentials, trying again"},
		{"404", (&StatusError{Code: 404}).Failure(), Down, "server is not an MCP server, trying again"},
		{"429", &StatusError{Code: 429}, Down, "server is down, trying again"},
		{"a page", &transport.KindError{Kind: "text/html"}, Down, "server is not an MCP server, trying again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bridgetest.Log
			a := NewAvailability(log.Logger())
			if state, _ := a.State(); state != Starting || a.Err() != mcp.ErrStarting {
				t.Errorf("at first State() = %v, Err() = %v", state, a.Err())
			}
			for range 3 {
				a.Report(tt.err)
			}
			if state, _ := a.State(); state != tt.state || (a.Err() == nil) != (state == Up) {
				t.Errorf("State() = %v, Err() = %v, want %v", state, a.Err(), tt.state)
			}
			if text := log.String(); strings.Count(text, "msg=") != 1 || !strings.Contains(text, tt.log) {
				t.Errorf("log %q, want %q once", text, tt.log)
			}
		})
	}
}

// A request says that the server is down only if it could not be sent, and not for want of
// a session or of its own client.
func TestAvailabilityOfRequests(t *testing.T) {
	gone, left := context.WithCancel(t.Context())
	left()
	cause := errors.New("refused")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want State
	}{
		{"answered", t.Context(), nil, Up},
		{"not sent", t.Context(), &Failure{Cause: cause, Fate: NotSent}, Down},
		{"not sent, for its client left", gone, &Failure{Cause: cause, Fate: NotSent}, Starting},
		{"not sent, for the session is lost", t.Context(), &Failure{Cause: cause, Fate: NotSent, Lost: true}, Starting},
		{"not sent, for the back was closed", t.Context(), &Failure{Cause: mcp.ErrShutdown, Fate: NotSent}, Starting},
		{"may have run", t.Context(), &Failure{Cause: cause, Fate: MayHaveRun}, Starting},
		{"no Failure", t.Context(), cause, Starting},
	} {
		a := NewAvailability(slog.New(slog.DiscardHandler))
		if a.Note(tt.ctx, tt.err); a.state != tt.want {
			t.Errorf("%s: state %v, want %v", tt.name, a.state, tt.want)
		}
	}
}

// What is told has the time of the last change, and the last error, though it is over.
func TestAvailabilityTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAvailability(slog.New(slog.DiscardHandler))
		a.Report(&Failure{Cause: errors.New("refused")})
		failed := time.Now()
		time.Sleep(time.Minute)
		a.Report(nil)
		up := time.Now()
		time.Sleep(time.Minute)
		a.Report(nil)
		var u status.Upstream
		if a.Tell(&u); u.Since != up || u.LastError != "refused" || u.LastErrorTime != failed {
			t.Errorf("told %+v, want up since %v, and refused at %v", u, up, failed)
		}
	})
}

// A server that is down is tried again with growing pauses, sooner if a request wants it,
// and again once it falls; nothing is tried after the end.
func TestSupervise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAvailability(slog.New(slog.DiscardHandler))
		if a.Want() {
			t.Error("Want() before Start = true, want no attempt promised")
		}
		var down atomic.Bool
		var tries atomic.Int32
		down.Store(true)
		a.Start(func(ctx context.Context) {
			a.Supervise(ctx, func(context.Context) (err error) {
				tries.Add(1)
				if down.Load() {
					err = errors.New("refused")
				}
				a.Report(err)
				return err
			})
		})
		wantTries := func(what string, least, most int32) {
			t.Helper()
			synctest.Wait()
			if n := tries.Swap(0); n < least || n > most {
				t.Errorf("%s: %d attempts, want %d to %d", what, n, least, most)
			}
		}
		wantTries("at once", 1, 1)
		time.Sleep(10 * time.Minute)
		wantTries("in ten minutes", 15, 60)
		time.Sleep(reachPauses.Min) // since the last
		if !a.Want() {
			t.Error("Want() = false, want an attempt promised")
		}
		time.Sleep(reachPauses.Min)
		wantTries("for a request", 1, 2)
		down.Store(false)
		time.Sleep(time.Minute)
		wantTries("once it can be reached", 1, 1)
		time.Sleep(time.Hour)
		wantTries("while it is up", 0, 0)
		a.Report(errors.New("lost"))
		wantTries("once it has fallen", 1, 1)
		a.Close()
		a.Report(errors.New("lost"))
		time.Sleep(time.Hour)
		wantTries("after the end", 0, 0)
		a.Start(func(context.Context) { t.Error("something was started after the end") })
	})
}

// One caller's credential is no reason to try again.
func TestSuperviseOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAvailability(slog.New(slog.DiscardHandler))
		var tries atomic.Int32
		a.Start(func(ctx context.Context) {
			a.Supervise(ctx, func(context.Context) error {
				tries.Add(1)
				return &CredentialError{Err: errors.New("none"), Caller: true}
			})
		})
		time.Sleep(time.Hour)
		if a.Close(); tries.Load() != 1 {
			t.Errorf("%d attempts, want 1", tries.Load())
		}
	})
}
