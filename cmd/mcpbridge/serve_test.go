package main

import (
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestServeNotebook(t *testing.T) {
	s := serve(t, nil)
	if len(s.Endpoints) != 1 || s.Endpoints[0].Name != "notebook" || !strings.HasSuffix(s.Endpoints[0].URL, "/mcp/notebook") {
		t.Fatalf("endpoints = %+v, want the notebook's", s.Endpoints)
	}
	url := s.Endpoints[0].URL
	if got := runCommand(t.Context(), nil, "call", url, "edit_note", "name=todo", "text=x"); got.out != "saved\n" || got.code != 0 {
		t.Errorf("call = %+v, want saved", got)
	}
	bridgetest.Eventually(t, "ready", func() bool { code, _ := get(t, s.Admin+"/readyz"); return code == 200 })
	if _, body := get(t, s.Admin+"/readyz"); strings.TrimSpace(body) != `{"status":"ready","servers":[{"name":"notebook","state":"up"}]}` {
		t.Errorf("/readyz = %s", body)
	}
	_, counts := get(t, s.Admin+"/metrics")
	for _, want := range []string{
		`mcpbridge_requests_total{era="modern",method="tools/call",outcome="ok",server="notebook"} 1`,
		`mcpbridge_upstream_sessions_opened_total{server="notebook"} `,
		"mcpbridge_index_topics 0",
	} {
		if !strings.Contains(counts, want) {
			t.Errorf("no %s in /metrics:\n%s", want, counts)
		}
	}
	if code := s.stop(); code != 0 {
		t.Errorf("serve = %d, want 0; it logged %s", code, s.log)
	}
}

// A list that may be kept is asked for once.
func TestM2L08ServeKeeps(t *testing.T) {
	path := configFile(t, "servers: {notebook: {builtin: notebook, cache: {tools/list: {ttl: 1m, scope: public}}}}\n")
	s := serve(t, nil, "-c", path)
	first := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL)
	if again := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL); first.code != 0 || again != first {
		t.Errorf("call = %+v, then %+v, want the same tools", first, again)
	}
	_, counts := get(t, s.Admin+"/metrics")
	for _, want := range []string{
		`mcpbridge_cache_requests_total{method="tools/list",outcome="hit",server="notebook"} 1`,
		`mcpbridge_cache_requests_total{method="tools/list",outcome="miss",server="notebook"} 1`,
		`mcpbridge_cache_bytes{server="notebook"} `,
	} {
		if !strings.Contains(counts, want) {
			t.Errorf("no %s in /metrics:\n%s", want, counts)
		}
	}
}

// A server that is down is reported, and the others are served.
func TestServeWhileAServerIsDown(t *testing.T) {
	path := configFile(t, "servers:\n  gone: {url: 'http://127.0.0.1:1/mcp'}\n  bad: {command: /no/such/program}\n  notebook: {builtin: notebook}\n")
	s := serve(t, nil, "-c", path)
	if got := runCommand(t.Context(), nil, "call", s.Endpoints[2].URL, "edit_note", "name=todo", "text=x"); got.out != "saved\n" {
		t.Errorf("call = %+v, want the notebook served", got)
	}
	bridgetest.Eventually(t, "ready", func() bool { code, _ := get(t, s.Admin+"/readyz"); return code == 200 })
	_, body := get(t, s.Admin+"/readyz")
	for _, want := range []string{`{"name":"gone","state":"down","reason":`, `{"name":"bad","state":"down","reason":`, `{"name":"notebook","state":"up"}`} {
		if !strings.Contains(body, want) {
			t.Errorf("/readyz = %s, want %s in it", body, want)
		}
	}
	for i, name := range []string{"gone", "bad"} {
		got := runCommand(t.Context(), nil, "call", s.Endpoints[i].URL, "x")
		if !strings.Contains(got.err, name) || got.code != exitFailure {
			t.Errorf("call = %+v, want an error that names %s", got, name)
		}
	}
}

// A listen stream through serve ends with its result when serve does.
func TestM2L38ServeDrains(t *testing.T) {
	s := serve(t, nil)
	out := &bridgetest.Log{}
	p := process{args: []string{"mcpbridge", "listen", s.Endpoints[0].URL, "--tools", "--id", `"x"`, "--json"}, stdout: out, stderr: out}
	ended := make(chan error, 1)
	go func() { ended <- p.run(t.Context()) }()
	bridgetest.Eventually(t, "acknowledged", func() bool { return strings.Contains(out.String(), "acknowledged") })
	if code := s.stop(); code != 0 {
		t.Errorf("serve = %d, want 0; it logged %s", code, s.log)
	}
	if err := <-ended; err != nil {
		t.Errorf("listen = %v, want a graceful end", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	m, err := wire.Parse([]byte(lines[len(lines)-1]), wire.Options{})
	if err != nil || m.ID != wire.StringID("x") || string(wire.Get(m.Result, "resultType")) != `"complete"` {
		t.Errorf("the last frame is %s, want the result of x", lines[len(lines)-1])
	}
}

// serve stands in for both ways of naming one server on the command line.
func TestServeOneServer(t *testing.T) {
	behind := serve(t, nil)
	t.Run("command", func(t *testing.T) {
		s := serve(t, nil, "--", "/bin/sh", "-c", "read request; exit 3")
		if s.Endpoints[0].Name != "sh" {
			t.Errorf("name = %q, want sh", s.Endpoints[0].Name)
		}
		got := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL)
		if !strings.Contains(got.err, `"sh"`) || !strings.Contains(got.err, "exit status 3") {
			t.Errorf("call = %+v, want an error that names the server and what became of it", got)
		}
	})
	t.Run("url", func(t *testing.T) {
		// The endpoint serves both eras: that it is asked tells, and the newer wins.
		s := serve(t, nil, behind.Endpoints[0].URL)
		if s.Endpoints[0].Name != "127.0.0.1" {
			t.Errorf("name = %q, want 127.0.0.1", s.Endpoints[0].Name)
		}
		got := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL, "edit_note", "name=todo", "text=x")
		if got.code != 0 || !strings.Contains(got.out, "saved") {
			t.Errorf("call = %+v, want the notebook's answer through two gateways", got)
		}
	})
}

func TestServeTakenAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	addr := l.Addr().String()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--listen", addr, "--admin", "off"}, "choose another address with --listen\n"},
		{[]string{"serve", "--listen", "127.0.0.1:0", "--admin", addr}, "choose another address with --admin, or --admin off\n"},
	} {
		got := runCommand(t.Context(), nil, tt.args...)
		if got.code != exitFailure || !strings.Contains(got.err, "listening on "+addr+": ") || !strings.HasSuffix(got.err, tt.want) || got.out != "" {
			t.Errorf("%q = %+v, want an error that names %s and says %q", tt.args, got, addr, tt.want)
		}
	}
}

// The environment alone can name what is served.
func TestServeFromTheEnvironment(t *testing.T) {
	s := serve(t, []string{"MCPBRIDGE_SERVERS__BOOK__BUILTIN=notebook"})
	if len(s.Endpoints) != 1 || s.Endpoints[0].Name != "book" {
		t.Errorf("endpoints = %+v, want book's alone", s.Endpoints)
	}
}

// What a newcomer does, with the binary: serve, follow a note, edit it, and see
// the line within a second; then SIGTERM ends the stream with its result.
func TestBinaryFirstLight(t *testing.T) {
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	server := start(t, bin, "serve", "--listen", "127.0.0.1:0", "--admin", "off")
	var listen, call []string
	bridgetest.Eventually(t, "printing what to try", func() bool {
		for line := range strings.SplitSeq(server.out.String(), "\n") {
			switch fields := strings.Fields(line); {
			case strings.HasPrefix(line, "  "+bin+" listen "):
				listen = fields[1:]
			case strings.HasPrefix(line, "  "+bin+" call "):
				call = fields[1:]
			}
		}
		return listen != nil && call != nil
	})
	follower := start(t, bin, listen...)
	bridgetest.Eventually(t, "acknowledged", func() bool { return strings.Contains(follower.out.String(), "acknowledged: note://todo\n") })

	if out, err := exec.Command(bin, call...).CombinedOutput(); err != nil || string(out) != "saved\n" {
		t.Fatalf("%q = %v, %s", call, err, out)
	}
	bridgetest.Eventually(t, "changed", func() bool { return strings.Contains(follower.out.String(), "changed: note://todo\n") })

	if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.cmd.Wait(); err != nil {
		t.Errorf("serve ended with %v, want 0; it logged %s", err, server.err)
	}
	if err := follower.cmd.Wait(); err != nil || !strings.Contains(follower.out.String(), "the server ended the stream") {
		t.Errorf("listen ended with %v, %s, want a graceful end", err, follower.out)
	}
}

// A web page whose name was rebound to this machine learns nothing of it.
func TestAdminRefusesForeignHosts(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{"/readyz", "/healthz", "/metrics"} {
		for host, want := range map[string]int{"evil.example:2527": 403, "localhost:2527": 200} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Admin+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			bridgetest.Eventually(t, path+" as "+host, func() bool {
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				return res.StatusCode == want
			})
		}
	}
}

// Clients open connections in reserve. One that has sent nothing is not waited for,
// nor taken for a request that was cut off.
func TestServeDrainsBesideSilentConnections(t *testing.T) {
	s := serve(t, nil)
	for _, at := range []string{s.Endpoints[0].URL, s.Admin} {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		get(t, at) // has been accepted after it
	}
	begin := time.Now()
	if code := s.stop(); code != 0 || time.Since(begin) > 8*time.Second { // the drain is 10 s
		t.Errorf("serve = %d after %v, want 0 within 8 s; it logged %s", code, time.Since(begin), s.log)
	}
}
