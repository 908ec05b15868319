package main

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// nobodyURL is where nobody listens. A port that was free a moment ago may be taken by
// what is tested.
const nobodyURL = "http://127.0.0.1:1/mcp"

// A suspect is a server whose era is to be found out.
type suspect struct {
	*server.Server
	bound time.Duration // timeouts.connect
	drain time.Duration
}

// newSuspect returns a server as serve makes it. log may be nil.
func newSuspect(t *testing.T, s config.Server, bound time.Duration, log *slog.Logger) *suspect {
	t.Helper()
	s.Name = "odd"
	c, _, err := loadConfig(config.Options{Servers: []config.Server{s}})
	if err != nil {
		t.Fatal(err)
	}
	c.Servers[0].Timeouts.Connect = bound
	// A race build takes a second over its exit unless told otherwise.
	c.Servers[0].Env = map[string]string{"GORACE": "atexit_sleep_ms=0"}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	servers, err := hook.Servers(newOptions(c, false, process{environ: os.Environ()}, log, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers[0].Close)
	return &suspect{servers[0], bound, c.Drain}
}

// judge wants a verdict, within the bound, and logs both.
func judge(t *testing.T, s *suspect, want spec.Era, slow bool, end time.Duration) mcp.Verdict {
	t.Helper()
	begun := time.Now()
	v, err := s.Detect(t.Context(), spec.Unknown, mcp.Probing{})
	total := time.Since(begun)
	t.Logf("%s in %v, %v with the end of what was started: %s", v.Era, v.Took.Round(time.Millisecond), total.Round(time.Millisecond), v.Reason)
	if err != nil || v.Era != want || v.Reason == "" {
		t.Errorf("verdict %v, %q, %v, want %v", v.Era, v.Reason, err, want)
	}
	// A loaded machine may be late to notice that the time is up.
	const late = 3 * time.Second
	if v.Took > s.bound+late || total > s.bound+end+late {
		t.Errorf("took %v, in all %v, want at most %v, and %v for the end", v.Took, total, s.bound, end)
	}
	if least := s.bound / 2; slow && v.Took < least {
		t.Errorf("took %v, want it to wait for %v at least", v.Took, least)
	}
	if !slow && v.Took >= s.bound {
		t.Errorf("took all of %v, want the verdict with the answer", s.bound)
	}
	return v
}

// boundOf returns the time that a verdict has: little where it takes all of that, and
// where it comes with the answer so much that a busy machine does not run out of it.
func boundOf(slow bool, little time.Duration) time.Duration {
	if slow {
		return little
	}
	return bridgetest.Patience
}

func TestU01OddURLs(t *testing.T) {
	for _, tt := range oddURLs {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := tt.server.start(t)
			judge(t, newSuspect(t, config.Server{URL: url}, boundOf(tt.slow, 1500*time.Millisecond), nil), tt.want, tt.slow, 0)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		url := "http://" + l.Addr().String() + "/mcp"
		_ = l.Close()
		judge(t, newSuspect(t, config.Server{URL: url}, time.Second, nil), spec.Unknown, false, 0)
	})
	t.Run("nobody accepts", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes the connection, nobody reads
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		judge(t, newSuspect(t, config.Server{URL: "http://" + l.Addr().String() + "/mcp"}, time.Second, nil), spec.Unknown, true, 0)
	})
}

func TestU01OddCommands(t *testing.T) {
	for _, tt := range oddCommands {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newSuspect(t, config.Server{Command: os.Args[0], Args: []string{"odd", tt.say}}, boundOf(tt.slow, 3*time.Second), nil)
			// Each of the two polite steps of a command's end may take a grace.
			judge(t, b, tt.want, tt.slow, 2*options.CloseGrace(b.drain)+killTime)
		})
	}
	t.Run("no such program", func(t *testing.T) {
		v := judge(t, newSuspect(t, config.Server{Command: "/no/such/program"}, time.Second, nil), spec.Unknown, false, 0)
		if !strings.Contains(v.Reason, "no such file") {
			t.Errorf("reason = %q, want the cause", v.Reason)
		}
	})
}

// A verdict says which steps led to it.
func TestU01StepsAreKept(t *testing.T) {
	refuses := &oddServer{status: 400, body: saysRefused + "\n---\n" + saysModern}
	v := judge(t, newSuspect(t, config.Server{URL: refuses.start(t)}, 2*time.Second, nil), spec.Modern, false, 0)
	if len(v.Steps) != 2 || !strings.Contains(v.Steps[0].Answer, "-32022") || !strings.Contains(v.Steps[1].Answer, "2026-07-28") {
		t.Errorf("steps = %+v, want the refusal and the answer", v.Steps)
	}
	fails := &oddServer{status: 500, kind: "text/html", greets: true}
	v = judge(t, newSuspect(t, config.Server{URL: fails.start(t)}, 2*time.Second, nil), spec.Legacy, false, 0)
	if len(v.Steps) != 2 || !strings.Contains(v.Steps[0].Answer, "500") || v.Steps[1].Answer != "revision 2025-06-18" {
		t.Errorf("steps = %+v, want the failure and the session", v.Steps)
	}
}

// A command that takes its first request for what all others will be, and was asked what
// it is, is started anew for whoever it serves.
func TestU02PinnedCommandIsServed(t *testing.T) {
	s := serve(t, os.Environ(), "--", os.Args[0], "pinned")
	got := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL, "--json")
	if got.code != 0 || got.out != "[]\n" {
		t.Errorf("call = %+v, want the empty list of tools; serve logged %s", got, s.log)
	}
}

// A server at a URL that fails at what it does not know is served all the same.
func TestU01FailingURLIsServed(t *testing.T) {
	odd := &oddServer{status: 500, kind: "text/html", body: "<h1>oops</h1>", greets: true}
	s := serve(t, nil, odd.start(t))
	got := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL, "--json")
	if got.code != 0 || got.out != "[]\n" {
		t.Errorf("call = %+v, want the empty list of tools; serve logged %s", got, s.log)
	}
}

// Clients, and who runs mcpbridge, are told what to do where there is no verdict; and
// the same each time, so that the log does not repeat it.
func TestFindingsNameTheNextStep(t *testing.T) {
	hangs := &oddServer{cut: true}
	for _, tt := range []struct{ name, url, want string }{
		{"nobody", nobodyURL, "nothing listens there"},
		{"hangs up", hangs.start(t), "does it need https://?"},
		{"fails", (&oddServer{status: 502, kind: "text/plain"}).start(t), "read its log"},
		{"silence", (&oddServer{silent: true}).start(t), "raise timeouts.connect"},
		{"credentials", (&oddServer{status: 401, kind: "text/plain"}).start(t), "HTTP 401 Unauthorized; check the credentials in the server's headers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newSuspect(t, config.Server{URL: tt.url}, time.Second, nil)
			var whys []string
			for range 2 {
				f := b.Find(t.Context(), spec.Unknown)
				whys = append(whys, f.Why)
			}
			if !strings.Contains(whys[0], tt.want) || strings.Contains(whys[0], "--") || whys[1] != whys[0] {
				t.Errorf("findings %q, want %q in both, and nothing of flags", whys, tt.want)
			}
		})
	}
}

// A probe is no server that is down and tried again: its command's end is logged, and
// the verdict.
func TestProbeLogsNoServerThatIsDown(t *testing.T) {
	var log bridgetest.Log
	debug := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b := newSuspect(t, config.Server{Command: os.Args[0], Args: []string{"odd", "exit"}}, 5*time.Second, debug)
	f := b.Find(t.Context(), spec.Unknown)
	if text := log.String(); f.Era != spec.Legacy || !strings.Contains(text, "command ended by itself") || strings.Contains(text, "is down") {
		t.Errorf("verdict %v, log\n%s\nwant the command's end, and no server that is down", f.Era, text)
	}
}

// Whatever era the server is taken for, who calls it hears what to do about the usual
// mistakes.
func TestErrorsNameTheNextStep(t *testing.T) {
	page := (&oddServer{kind: "text/html", body: "<h1>It works</h1>"}).start(t)
	missing := (&oddServer{status: 404, kind: "text/html", body: "<h1>Not Found</h1>"}).start(t)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	slash := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/mcp/?key=secret", http.StatusTemporaryRedirect)
	}))
	defer slash.Close()
	for _, tt := range []struct{ name, url, want string }{
		{"a slash too few", slash.URL + "/mcp", "HTTP 307 Temporary Redirect; redirects are not followed: put a / at the end of its URL"},
		{"a page", page, "is it an MCP server, and the path of its URL right?"},
		{"a wrong path", missing, "check the path of its URL"},
		{"a certificate of nobody's", secure.URL, "SSL_CERT_FILE"},
		{"nobody", nobodyURL, "nothing listens there"},
	} {
		for _, era := range []string{"auto", "legacy", "modern"} {
			t.Run(tt.name+" as "+era, func(t *testing.T) {
				s := serve(t, []string{"MCPBRIDGE_SERVERS__ODD__URL=" + tt.url, "MCPBRIDGE_SERVERS__ODD__ERA=" + era})
				got := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL)
				if got.code != exitFailure || !strings.Contains(got.err, `server "odd" `) || !strings.Contains(got.err, tt.want) {
					t.Errorf("call = %d, %q, want it to name the server and say %q", got.code, got.err, tt.want)
				}
			})
		}
	}
}

// A server that was found to be of 2026-07-28 is not taken for one of the older era
// because it crashes, keeps silent, or is behind a proxy that shows a page meanwhile; but
// one that answers as only the older era does is.
func TestU02StandingVerdictFallsByAnAnswer(t *testing.T) {
	command := func(script string) config.Server {
		return config.Server{Command: os.Args[0], Args: []string{"odd", script}}
	}
	url := func(o *oddServer) config.Server { return config.Server{URL: o.start(t)} }
	for _, tt := range []struct {
		name   string
		server config.Server
		want   spec.Era
	}{
		{"crashes at its start", command("quit"), spec.Unknown},
		{"crashes on the question", command("exit"), spec.Unknown},
		{"is silent", command(""), spec.Unknown},
		{"a page with 404", url(&oddServer{status: 404, kind: "text/html", body: "default backend"}), spec.Unknown},
		{"a page with 200", url(&oddServer{kind: "text/html", body: "We'll be back soon"}), spec.Unknown},
		{"a page, and a session", url(&oddServer{status: 404, kind: "text/html", body: "no", greets: true}), spec.Legacy},
		{"a legacy error", command("answer " + saysUnknown), spec.Legacy},
		{"a command that takes one for the other", config.Server{Command: os.Args[0], Args: []string{"pinned"}}, spec.Legacy},
		{"modern still", command("answer " + saysModern), spec.Modern},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newSuspect(t, tt.server, 3*time.Second, nil)
			f := b.Find(t.Context(), spec.Modern)
			if f.Era != tt.want || f.Why == "" {
				t.Errorf("finding %v, %q, want %v", f.Era, f.Why, tt.want)
			}
		})
	}
}
