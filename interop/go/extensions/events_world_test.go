package extensions

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// eventsTimeout is timeouts.request and timeouts.max of the server of events: heartbeats go
// on beyond both.
const eventsTimeout = 3 * time.Second

// An eventsWorld is mcpbridge between a client and the server of events.
type eventsWorld struct {
	t      *testing.T
	client eventsClient
	bridge *process.Process // of serve; nil under wrap
	admin  string           // its address, empty under wrap
}

// eventsPaths are the ways from a client to a server.
var eventsPaths = []struct{ client, server string }{
	{"http", "http"}, {"http", "stdio"}, {"stdio", "http"}, {"stdio", "stdio"},
}

// newEventsWorld starts a server that is reached over one transport and mcpbridge before it,
// which is reached over another. All ends with the test.
func newEventsWorld(t *testing.T, b rig.Binaries, client, server string) *eventsWorld {
	t.Helper()
	url := ""
	if server == "http" {
		url = startEvents(t, b)
	}
	if client == "stdio" {
		return &eventsWorld{t: t, client: wrapEvents(t, b, url)}
	}
	listen, admin := rig.FreeAddr(t), rig.FreeAddr(t)
	where := fmt.Sprintf("command: %q", b.Server)
	if url != "" {
		where = fmt.Sprintf("url: %q", url)
	}
	p := b.StartBridge(t, fmt.Sprintf("listen: %s\nadmin: %s\ndrain: 10s\nservers:\n  events: {%s, timeouts: {request: %v, max: %[4]v}}\n",
		listen, admin, where, eventsTimeout), admin)
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return &eventsWorld{t: t, client: newEventsHTTP(t, "http://"+listen+"/mcp/events"), bridge: p, admin: admin}
}

// startEvents starts the server of events over HTTP and returns its URL.
func startEvents(t *testing.T, b rig.Binaries) string {
	t.Helper()
	addr := rig.FreeAddr(t)
	p, err := process.Start("events", nil, b.Server, "-http", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	url := "http://" + addr + "/mcp"
	if err := p.Ready(t.Context(), url, 0); err != nil {
		t.Fatal(err)
	}
	return url
}

// wrapEvents starts mcpbridge on pipes, before the server at url or a process of it.
func wrapEvents(t *testing.T, b rig.Binaries, url string) eventsClient {
	t.Helper()
	argv := process.WithCache(b.Bridge, "wrap", "--name", "events", url)
	if url == "" {
		argv = process.WithCache(b.Bridge, "wrap", "--name", "events", "--", b.Server)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("MCPBRIDGE_SERVERS__EVENTS__TIMEOUTS__REQUEST=%v", eventsTimeout),
		fmt.Sprintf("MCPBRIDGE_SERVERS__EVENTS__TIMEOUTS__MAX=%v", eventsTimeout))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return startEventsPipe(t, cmd)
}

// rest is what a serving mcpbridge holds, by name.
func (w *eventsWorld) rest() map[string]float64 {
	w.t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	all := rig.Gauges(w.t, c, w.admin)
	held := make(map[string]float64)
	for name, value := range all {
		switch {
		case name == "go_goroutines", name == "process_open_fds", strings.HasPrefix(name, "mcpbridge_listen_streams"):
			held[name] = value
		}
	}
	return held
}

// wantRest waits until nothing more is held than before.
func (w *eventsWorld) wantRest(before map[string]float64) {
	w.t.Helper()
	rig.Until(w.t, time.Minute, "nothing left", func() string {
		for name, value := range w.rest() {
			if value > before[name] {
				return fmt.Sprintf("%s is %v, was %v", name, value, before[name])
			}
		}
		return ""
	})
}
