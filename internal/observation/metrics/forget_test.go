package metrics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// ofHistogram are names below that of a histogram.
var ofHistogram = regexp.MustCompile(`_(bucket|count|sum)$`)

// use counts one of everything that is counted by server.
func use(m *Metrics, server string) {
	m.Request(mcp.Served{Server: server, Method: "tools/call", Era: "modern", Outcome: "ok", Took: time.Millisecond})
	m.Request(mcp.Served{Server: server, Group: "all", Method: "tools/call", Era: "modern", Outcome: "ok", Took: time.Millisecond})
	m.Upstream(server, "tools/call", "", time.Millisecond, "")
	m.Dropped(server, "x")
	m.Limit(server, "x")
	m.Refused(server, "x")
	m.Held(server, mcp.HeldCalls, 1)
	m.Held(server, mcp.HeldTasks, 1)
	m.Sessions(server, 1)
	m.Sockets(server, 1)
	m.Offered(server, 1)
	m.Delivered(server, 1)
	m.CacheLooked(server, "tools/list", true)
	m.CacheEvicted(server, "x")
	m.CacheBytes(server, 1)
	m.SessionOpened(server)
	m.SessionEnded(server, "x")
	m.StateLost(server, "x", 1)
	m.CommandStarted(server)
	m.Quirk(server, "x")
}

// Of a server that is forgotten nothing is left, of others everything; and one of its name
// begins at zero.
func TestForget(t *testing.T) {
	m := New("v1")
	use(m, "docs")
	use(m, "files")
	before := scrape(t, m)
	series := strings.Count(before, `server="docs"`)
	for name, labels := range metricNames(t) {
		if slices.Contains(labels, "server") && !ofHistogram.MatchString(name) && !strings.Contains(before, "# TYPE "+name+" ") {
			t.Errorf("use counts no %s", name)
		}
	}
	if metrics := strings.Count(before, "# TYPE mcp"); series < 19 || series != strings.Count(before, `server="files"`) {
		t.Fatalf("%d series of a server in %d metrics", series, metrics)
	}
	m.Forget("docs")
	got := scrape(t, m)
	for line := range strings.Lines(got) {
		if strings.Contains(line, `server="docs"`) {
			t.Errorf("left: %s", line)
		}
	}
	if n := strings.Count(got, `server="files"`); n != series {
		t.Errorf("%d series of another server, want %d", n, series)
	}
	use(m, "docs")
	if got := scrape(t, m); strings.Count(got, `server="docs"`) != series {
		t.Errorf("%d series of one of that name, want %d", strings.Count(got, `server="docs"`), series)
	}
	for _, want := range []string{`mcpbridge_requests_total{era="modern",method="tools/call",outcome="ok",server="docs"} 2`, `mcp_client_operation_duration_seconds_count{error_type="",mcp_method_name="tools/call",server="docs"} 1`} {
		if got := scrape(t, m); !strings.Contains(got, want) {
			t.Errorf("no %q: it does not begin at zero, or counts where nobody looks", want)
		}
	}
}

// Nor is anything left of what has passed a group that is forgotten.
func TestForgetAGroup(t *testing.T) {
	m := New("v1")
	use(m, "docs")
	m.Forget("all")
	if got := scrape(t, m); strings.Contains(got, `group="all"`) || !strings.Contains(got, `server="docs"`) {
		t.Errorf("left of the group: %s", got)
	}
	use(m, "docs")
	if want := `mcpbridge_group_requests_total{group="all",outcome="ok",server="docs"} 1`; !strings.Contains(scrape(t, m), want) {
		t.Errorf("no %q", want)
	}
}

// A configuration that names another server each time does not make the process grow.
func TestHardeningForgottenServers(t *testing.T) {
	m := New("v1")
	use(m, "stays")
	before := len(scrape(t, m))
	for i := range 500 {
		use(m, fmt.Sprint("server-", i))
		m.Forget(fmt.Sprint("server-", i))
	}
	if after := len(scrape(t, m)); after > before+2000 {
		t.Errorf("/metrics has %d bytes, %d before", after, before)
	}
	if all := *m.requests.ofClients.all.Load(); len(all) != 2 {
		t.Errorf("%d keys are kept", len(all))
	}
}
