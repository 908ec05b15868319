package trunk

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A world is a legacy server and an mcpbridge in front of it.
type world struct {
	t      testing.TB
	server *server
	bridge *process.Process
	listen string // mcpbridge's address for clients
	admin  string // and that for us
	http   *http.Client
}

// A setup says what kind of world is wanted.
type setup struct {
	stdio    bool // the server is mcpbridge's child
	eventIDs bool
	proxy    bool   // HTTP goes through one, and unknown sessions are 400
	config   string // further lines of mcpbridge's configuration
}

func (s setup) String() string {
	switch {
	case s.stdio:
		return "stdio"
	case s.eventIDs:
		return "http with event ids"
	case s.proxy:
		return "http through a proxy"
	}
	return "http"
}

const linger = 200 * time.Millisecond

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{t: t, listen: rig.FreeAddr(t), admin: rig.FreeAddr(t), http: &http.Client{Timeout: 20 * time.Second}}
	dir := t.TempDir()
	w.server = newServer(t, dir, s, w.http)
	w.startBridge(s)
	t.Cleanup(w.close)
	w.wantSubscribed(time.Minute, nil) // mcpbridge starts a child when it is needed
	return w
}

func (w *world) startBridge(s setup) {
	w.t.Helper()
	base := "http://" + w.server.addr
	if s.proxy {
		base = newProxy(w.t, base)
	}
	server := fmt.Sprintf("url: %q", base+"/mcp")
	if s.stdio {
		args, err := json.Marshal(w.server.args)
		if err != nil {
			w.t.Fatal(err)
		}
		server = fmt.Sprintf("command: %q, args: %s", binaries.Server, args)
	}
	config := fmt.Sprintf("listen: %s\nadmin: %s\nlog: {level: warn}\n%s\nservers:\n  legacy: {%s, linger: %v}\n", w.listen, w.admin, s.config, server, linger)
	w.bridge = binaries.StartBridge(w.t, config, w.admin)
}

// newProxy returns the URL of a reverse proxy before base. It answers 502 while
// the server is away, and 400 where the server says 404: as many servers answer
// for a session that they don't know.
func newProxy(t testing.TB, base string) string {
	t.Helper()
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	p := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1, // at once
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusNotFound {
				r.StatusCode = http.StatusBadRequest
			}
			return nil
		},
	}
	s := httptest.NewServer(p)
	s.Config.ErrorLog = p.ErrorLog
	t.Cleanup(s.Close)
	return s.URL
}

// close ends mcpbridge, which must not be dead, nor need to be killed.
func (w *world) close() {
	w.http.CloseIdleConnections()
	if w.t.Failed() {
		w.t.Logf("mcpbridge's log ends:\n%s", w.bridge.Log())
	}
	if err := w.bridge.Stop(time.Minute); err != nil {
		w.t.Error(err)
	}
	w.server.close()
}

// gauges returns the samples of /metrics, by name with labels.
func (w *world) gauges() map[string]float64 {
	w.t.Helper()
	return rig.Gauges(w.t, w.http, w.admin)
}

// want waits until the gauges have the values.
func (w *world) want(d time.Duration, what string, want map[string]float64) {
	w.t.Helper()
	rig.Until(w.t, d, what, func() string {
		got := w.gauges()
		for name, v := range want {
			if got[name] != v {
				return fmt.Sprintf("%s = %v, want %v", name, got[name], v)
			}
		}
		return ""
	})
}

// subscriptions asks the server, through mcpbridge, what it is subscribed to.
func (w *world) subscriptions() (subs subscriptions, problem string) {
	w.t.Helper()
	return callTool[subscriptions](w, "subscriptions")
}

// wantSubscribed waits until the server has one subscription to each of the
// URIs, on one session, and no other.
func (w *world) wantSubscribed(d time.Duration, uris map[string]bool) {
	w.t.Helper()
	rig.Until(w.t, d, "upstream subscriptions", func() string {
		subs, problem := w.subscriptions()
		if problem != "" {
			return problem
		}
		for uri := range uris {
			if subs.URIs[uri] != 1 {
				return fmt.Sprintf("%s is subscribed to by %d sessions, want 1", uri, subs.URIs[uri])
			}
		}
		if subs.Total != len(uris) {
			return fmt.Sprintf("there are %d subscriptions, want %d", subs.Total, len(uris))
		}
		return ""
	})
}
