package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// anyTime is for verdicts that are not given in a bubble, where time is exact.
const anyTime = -1

// judge wants a verdict after a time, and returns it.
func judge(t *testing.T, s *Server, want spec.Era, took time.Duration) mcp.Verdict {
	t.Helper()
	v, err := s.Detect(t.Context(), spec.Unknown, mcp.Probing{})
	if err != nil || v.Era != want || v.Reason == "" || took != anyTime && v.Took.Round(100*time.Millisecond) != took {
		t.Errorf("Detect = %v, %q, %v after %v, want %v after %v", v.Era, v.Reason, err, v.Took, want, took)
	}
	return v
}

func TestU01OddURLs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server *backtest.OddServer
		want   spec.Era
		took   time.Duration
	}{
		{"modern", &backtest.OddServer{Body: backtest.SaysModern}, spec.Modern, 0},
		{"modern as an event stream", &backtest.OddServer{Kind: "text/event-stream", Body: ": hello\r\nid: 7\r\nretry: 5\r\ndata: " + backtest.SaysModern + "\r\n\r\n"}, spec.Modern, 0},
		{"modern, refusing the first request", &backtest.OddServer{Status: 400, Body: backtest.SaysRefused + "\n---\n" + backtest.SaysModern}, spec.Modern, 0},
		{"modern, refusing always", &backtest.OddServer{Status: 400, Body: backtest.SaysRefused}, spec.Modern, 0},
		{"-32020", &backtest.OddServer{Status: 400, Body: backtest.SaysMismatch}, spec.Modern, 0},
		{"-32021", &backtest.OddServer{Status: 400, Body: backtest.SaysCapability}, spec.Modern, 0},
		{"-32020 under 500", &backtest.OddServer{Status: 500, Body: backtest.SaysMismatch}, spec.Modern, 0},
		{"a result with legacy versions only", &backtest.OddServer{Body: backtest.SaysOldOnly}, spec.Legacy, 0},
		{"200 with an error", &backtest.OddServer{Body: backtest.SaysUnknown}, spec.Legacy, 0},
		{"200 with an internal error", &backtest.OddServer{Body: backtest.SaysInternal}, spec.Legacy, 0},
		{"400 with a legacy error", &backtest.OddServer{Status: 400, Body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`}, spec.Legacy, 0},
		{"404 with HTML", &backtest.OddServer{Status: 404, Kind: "text/html", Body: "<h1>Not Found</h1>"}, spec.Legacy, 0},
		{"405 with HTML", &backtest.OddServer{Status: 405, Kind: "text/html", Body: "<h1>Method Not Allowed</h1>"}, spec.Legacy, 0},
		{"406", &backtest.OddServer{Status: 406, Kind: "text/plain", Body: "no"}, spec.Legacy, 0},
		{"200 with HTML", &backtest.OddServer{Kind: "text/html", Body: "<h1>It works</h1>"}, spec.Legacy, 0},
		{"202 without a body", &backtest.OddServer{Status: 202, Kind: "text/plain"}, spec.Legacy, 0},
		{"an answer to something else", &backtest.OddServer{Body: strings.ReplaceAll(backtest.SaysModern, "%s", "4711")}, spec.Legacy, 0},
		{"a stream without an answer", &backtest.OddServer{Kind: "text/event-stream", Body: ": bye\n\n"}, spec.Legacy, 0},
		{"500, then a session", &backtest.OddServer{Status: 500, Kind: "text/html", Body: "<h1>oops</h1>", Greets: true}, spec.Legacy, 0},
		{"500 with an error, then a session", &backtest.OddServer{Status: 500, Body: backtest.SaysInternal, Greets: true}, spec.Legacy, 0},
		{"silence, then a session", &backtest.OddServer{Silent: true, Greets: true}, spec.Legacy, connect*2/3 + answerTime},
		{"silence, then a session, and then modern", &backtest.OddServer{Body: backtest.SaysModern, Late: connect*2/3 + 200*time.Millisecond, Greets: true}, spec.Modern, connect*2/3 + 200*time.Millisecond},
		{"modern, late", &backtest.OddServer{Body: backtest.SaysModern, Late: connect * 4 / 5}, spec.Modern, connect * 4 / 5},
		{"silence, then a session, and then 401", &backtest.OddServer{Status: 401, Kind: "text/plain", Late: connect*2/3 + 100*time.Millisecond, Greets: true}, spec.Legacy, connect*2/3 + 100*time.Millisecond},
		{"silence, then a session, and then a page", &backtest.OddServer{Status: 404, Kind: "text/html", Late: connect*2/3 + 100*time.Millisecond, Greets: true}, spec.Legacy, connect*2/3 + 100*time.Millisecond},
		{"one request at a time, of which it does not know the first", &backtest.OddServer{Silent: true, Greets: true, Single: true}, spec.Legacy, connect * 5 / 6},
		{"silence, then a session, and then an error", &backtest.OddServer{Body: backtest.SaysUnknown, Late: connect*2/3 + 100*time.Millisecond, Greets: true}, spec.Legacy, connect*2/3 + 100*time.Millisecond},
		{"a cut connection, then a session", &backtest.OddServer{Cut: true, Greets: true}, spec.Legacy, 0},
		{"silence", &backtest.OddServer{Silent: true}, spec.Unknown, connect},
		{"a cut connection", &backtest.OddServer{Cut: true}, spec.Unknown, 0},
		{"401", &backtest.OddServer{Status: 401, Body: backtest.SaysUnknown, Greets: true}, spec.Unknown, 0},
		{"403", &backtest.OddServer{Status: 403, Kind: "text/plain", Body: "no", Greets: true}, spec.Unknown, 0},
		{"429", &backtest.OddServer{Status: 429, Kind: "text/plain", Body: "later", Greets: true}, spec.Unknown, 0},
		{"500", &backtest.OddServer{Status: 500, Kind: "text/html", Body: "<h1>oops</h1>"}, spec.Unknown, 0},
		{"502", &backtest.OddServer{Status: 502, Kind: "text/html", Body: "<h1>Bad Gateway</h1>"}, spec.Unknown, 0},
		{"503", &backtest.OddServer{Status: 503, Kind: "text/plain"}, spec.Unknown, 0},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) { judge(t, overHTTP(t, tt.server), tt.want, tt.took) })
	}
	t.Run("nobody listens", func(t *testing.T) { judge(t, New(options(nobodyURL)), spec.Unknown, anyTime) })
	bridgetest.RunBubble(t, "nobody accepts", func(t *testing.T) {
		o, tr := options("http://127.0.0.1/mcp"), bridgetest.Listen().Transport()
		o.RoundTripper = tr
		judge(t, New(o), spec.Unknown, connect)
		tr.CloseIdleConnections()
	})
}

func TestU01OddCommands(t *testing.T) {
	for _, tt := range []struct {
		name, say string
		want      spec.Era
		took      time.Duration
	}{
		{"modern", "answer " + backtest.SaysModern, spec.Modern, 0},
		{"modern, refusing the first request", "answer " + backtest.SaysRefused + "\nanswer " + backtest.SaysModern, spec.Modern, 0},
		{"-32020", "answer " + backtest.SaysMismatch, spec.Modern, 0},
		{"a result with legacy versions only", "answer " + backtest.SaysOldOnly, spec.Legacy, 0},
		{"unknown method", "answer " + backtest.SaysUnknown, spec.Legacy, 0},
		{"invalid before initialize", "answer " + backtest.SaysNotYet, spec.Legacy, 0},
		{"exits on it", "exit", spec.Legacy, 0},
		{"exits at once", "quit", spec.Unknown, 0},
		{"silence", "", spec.Legacy, silentTime},
		{"an answer to something else", "answer " + strings.ReplaceAll(backtest.SaysModern, "%s", "4711"), spec.Legacy, silentTime},
		{"reads nothing", "hang", spec.Unknown, connect},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			s, starts := byCommand(t, options(""), script(tt.say))
			if v := judge(t, s, tt.want, tt.took); v.Starting != (tt.say == "hang") {
				t.Errorf("Starting = %v of %q", v.Starting, tt.say)
			}
			if n := starts.Load(); n != 1 {
				t.Errorf("%d processes, want 1", n)
			}
		})
	}
	t.Run("no such program", func(t *testing.T) {
		o := options("")
		o.Command.Argv = []string{"/no/such/program"}
		if v := judge(t, New(o), spec.Unknown, anyTime); !strings.Contains(v.Reason, "no such file") {
			t.Errorf("reason = %q, want the cause", v.Reason)
		}
	})
}

// A command that has not answered is given more time if no client waits.
func TestU01SilenceWithoutAClient(t *testing.T) {
	for _, tt := range []struct {
		name        string
		comes, want time.Duration
	}{
		{"a client waits", 0, silentTime},
		{"one comes", 3 * time.Second, 3 * time.Second},
		{"nobody waits", time.Hour, silentTime + extraSilentTime},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			s, _ := byCommand(t, options(""), script(""))
			b := open(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { // ends with ctx
				defer close(ended)
				select {
				case <-time.After(tt.comes):
					_, _ = b.Describe(ctx, from(spec.Modern, spec.MethodDiscover, "{}")) // which is not answered
				case <-ctx.Done():
				}
			}()
			time.Sleep(tt.want - time.Millisecond)
			before := b.Era()
			time.Sleep(100 * time.Millisecond)
			if after := b.Era(); before != spec.Unknown || after != spec.Legacy {
				t.Errorf("the era is %v before %v, and %v after, want it found then", before, tt.want, after)
			}
			cancel()
			<-ended
		})
	}
}

// A server of both eras that was slow, or behind a proxy that failed, when it was asked is taken for
// a legacy one for now.
func TestU02UnsureVerdictsAreMarked(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server *backtest.OddServer
		want   bool
	}{
		{"silence, then a session", &backtest.OddServer{Silent: true, Greets: true}, true},
		{"503, then a session", &backtest.OddServer{Status: 503, Kind: "text/plain", Greets: true}, true},
		{"a cut connection, then a session", &backtest.OddServer{Cut: true, Greets: true}, true},
		{"401 after a session", &backtest.OddServer{Status: 401, Kind: "text/plain", Late: connect*2/3 + answerTime/2, Greets: true}, true},
		{"a page after a session", &backtest.OddServer{Status: 404, Kind: "text/html", Late: connect*2/3 + answerTime/2, Greets: true}, false},
		{"an error after a session", &backtest.OddServer{Body: backtest.SaysUnknown, Late: connect*2/3 + answerTime/2, Greets: true}, false},
		{"a legacy error", &backtest.OddServer{Body: backtest.SaysUnknown, Greets: true}, false},
		{"a page", &backtest.OddServer{Status: 404, Kind: "text/html"}, false},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			if f := overHTTP(t, tt.server).Find(t.Context(), spec.Unknown); f.Unsure != tt.want || f.Era != spec.Legacy || strings.Contains(f.Why, "asked again") != tt.want {
				t.Errorf("finding %v, %q, unsure: %v, want %v", f.Era, f.Why, f.Unsure, tt.want)
			}
		})
	}
}

// What a server did not answer as one of MCP makes it legacy by a guess.
func TestU01GuessesAreMarked(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server *backtest.OddServer
		want   bool
	}{
		{"a page", &backtest.OddServer{Status: 404, Kind: "text/html"}, true},
		{"a legacy error", &backtest.OddServer{Body: backtest.SaysUnknown}, false},
		{"modern", &backtest.OddServer{Body: backtest.SaysModern}, false},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			if f := overHTTP(t, tt.server).Find(t.Context(), spec.Unknown); f.Guess != tt.want || f.Era == spec.Unknown {
				t.Errorf("finding %v, a guess: %v, want %v", f.Era, f.Guess, tt.want)
			}
		})
	}
}

// A verdict says which steps led to it.
func TestU01StepsAreKept(t *testing.T) {
	bridgetest.RunBubble(t, "one request again", func(t *testing.T) {
		refuses := &backtest.OddServer{Status: 400, Body: backtest.SaysRefused + "\n---\n" + backtest.SaysModern}
		v := judge(t, overHTTP(t, refuses), spec.Modern, 0)
		if len(v.Steps) != 2 || !strings.Contains(v.Steps[0].Answer, "-32022") || !strings.Contains(v.Steps[1].Answer, "2026-07-28") {
			t.Errorf("steps = %+v, want the refusal and the answer", v.Steps)
		}
	})
	bridgetest.RunBubble(t, "two requests", func(t *testing.T) {
		fails := &backtest.OddServer{Status: 500, Kind: "text/html", Greets: true}
		v := judge(t, overHTTP(t, fails), spec.Legacy, 0)
		if len(v.Steps) != 2 || !strings.Contains(v.Steps[0].Answer, "500") || v.Steps[1].Answer != "revision 2025-06-18" {
			t.Errorf("steps = %+v, want the failure and the session", v.Steps)
		}
	})
}

// A server that is at most legacy is taken for that only if it opens a session, if a person
// asks once.
func TestU01JudgeOpensASession(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server *backtest.OddServer
		want   spec.Era
		status int
		reason string
	}{
		{"a page and a session", &backtest.OddServer{Status: 404, Kind: "text/html", Greets: true}, spec.Legacy, 0, "it answered initialize"},
		{"a page", &backtest.OddServer{Status: 404, Kind: "text/html"}, spec.Unknown, 404, "it answered server/discover with HTTP 404 Not Found; opening a session failed: initialize: HTTP 404 Not Found"},
		{"a legacy error", &backtest.OddServer{Body: backtest.SaysUnknown}, spec.Legacy, 0, "it refused server/discover"},
		{"modern", &backtest.OddServer{Body: backtest.SaysModern}, spec.Modern, 0, "it answered server/discover"},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			v, err := overHTTP(t, tt.server).Judge(t.Context())
			if err != nil || v.Era != tt.want || v.Status != tt.status || !strings.HasPrefix(v.Reason, tt.reason) {
				t.Errorf("Judge = %v, status %d, %q, %v, want %v, %d, %q", v.Era, v.Status, v.Reason, err, tt.want, tt.status, tt.reason)
			}
		})
	}
}

// A server that was found to be of 2026-07-28 is not taken for one of the older era
// because it crashes, keeps silent, or is behind a proxy that shows a page meanwhile; but
// one that answers as only the older era does is.
func TestU02StandingVerdictFallsByAnAnswer(t *testing.T) {
	command := func(do play) func(*testing.T) *Server {
		return func(t *testing.T) *Server {
			s, _ := byCommand(t, options(""), do)
			return s
		}
	}
	url := func(o *backtest.OddServer) func(*testing.T) *Server {
		return func(t *testing.T) *Server { return overHTTP(t, o) }
	}
	for _, tt := range []struct {
		name string
		make func(*testing.T) *Server
		want spec.Era
	}{
		{"crashes at its start", command(script("quit")), spec.Unknown},
		{"crashes on the question", command(script("exit")), spec.Unknown},
		{"is silent", command(script("")), spec.Unknown},
		{"a page with 404", url(&backtest.OddServer{Status: 404, Kind: "text/html", Body: "default backend"}), spec.Unknown},
		{"a page with 200", url(&backtest.OddServer{Kind: "text/html", Body: "We'll be back soon"}), spec.Unknown},
		{"a page, and a session", url(&backtest.OddServer{Status: 404, Kind: "text/html", Body: "no", Greets: true}), spec.Legacy},
		{"a legacy error", command(script("answer " + backtest.SaysUnknown)), spec.Legacy},
		{"modern still", command(script("answer " + backtest.SaysModern)), spec.Modern},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			f := tt.make(t).Find(t.Context(), spec.Modern)
			if f.Era != tt.want || f.Why == "" {
				t.Errorf("finding %v, %q, want %v", f.Era, f.Why, tt.want)
			}
		})
	}
}

// Clients, and who runs mcpbridge, are told what to do where there is no verdict; and
// the same each time, so that the log does not repeat it.
func TestFindingsNameTheNextStep(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server http.Handler // nil for none
		want   string
		public string // empty if it is the same
	}{
		{"nobody", nil, "connection refused; nothing listens there", "nothing listens there: check that it runs, and the port; more is in the log of mcpbridge"},
		{"hangs up", &backtest.OddServer{Cut: true}, "does it need https://?", "more is in the log of mcpbridge"},
		{"fails", &backtest.OddServer{Status: 502, Kind: "text/plain"}, "read its log", ""},
		{"silence", &backtest.OddServer{Silent: true}, "raise timeouts.connect", "it did not answer in time; if it is slow, raise timeouts.connect; more is in the log of mcpbridge"},
		{"credentials", &backtest.OddServer{Status: 401, Kind: "text/plain"}, "HTTP 401 Unauthorized; check the credentials in the server's headers", ""},
		{"redirect", &backtest.OddServer{Status: 307, Kind: "text/plain"}, "HTTP 307 Temporary Redirect; redirects are not followed", ""},
	} {
		find := func(t *testing.T) {
			s := New(options(nobodyURL))
			if tt.server != nil {
				s = overHTTP(t, tt.server)
			}
			f, again := s.Find(t.Context(), spec.Unknown), s.Find(t.Context(), spec.Unknown)
			if !strings.Contains(f.Why, tt.want) || strings.Contains(f.Why, "--") || again.Why != f.Why {
				t.Errorf("findings %q and %q, want %q in both, and nothing of flags", f.Why, again.Why, tt.want)
			}
			if tt.public == "" && f.Public != f.Why || !strings.HasSuffix(f.Public, tt.public) || strings.Contains(f.Public, "127.0.0.1") {
				t.Errorf("for clients %q, want it to end with %q, and no addresses", f.Public, tt.public)
			}
		}
		if tt.server == nil { // over a real socket
			t.Run(tt.name, find)
			continue
		}
		bridgetest.RunBubble(t, tt.name, find)
	}
}

// A server that can't be asked at all is a finding, too.
func TestFindWithoutAWay(t *testing.T) {
	for _, o := range []Options{options(nobodyURL), options("")} {
		o.ClientInfo = nil
		s, _ := byCommand(t, o, script(""))
		f := s.Find(t.Context(), spec.Unknown)
		if f.Era != spec.Unknown || f.Trouble != "can't be asked" || !strings.Contains(f.Why, "ClientInfo") || !strings.HasSuffix(f.Public, moreInLog) {
			t.Errorf("of URL %q: finding %+v, want that it can't be asked, and why", o.URL, f)
		}
	}
}
