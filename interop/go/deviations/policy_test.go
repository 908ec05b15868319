package deviations

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// touchable is what the policy denies.
var touchable = place{tool: "touch", arguments: "{}", uri: "test://it"}

// A touched is a server on go-sdk that counts how often it was used.
type touched struct {
	url          string
	calls, reads atomic.Int64
}

// newTouched starts a server: with sessions it is one of legacy revisions, without one of both
// eras.
func newTouched(t *testing.T, sessions bool) *touched {
	c := &touched{}
	s := mcp.NewServer(&mcp.Implementation{Name: "touched", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: touchable.tool, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c.calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "touched"}}}, nil
	})
	s.AddResource(&mcp.Resource{Name: "it", URI: touchable.uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		c.reads.Add(1)
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: touchable.uri, Text: "touched"}}}, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: !sessions})
	at := httptest.NewServer(h)
	t.Cleanup(func() {
		at.CloseClientConnections() // streams that mcpbridge holds
		at.Close()
	})
	c.url = at.URL
	return c
}

// An entry is what a line of the audit log says that was served.
type entry struct{ Server, Era, Method, Name, Decision string }

// audited counts the entries of an audit log that are about what the policy denies.
func audited(t *testing.T, file string) map[entry]int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	counts := make(map[entry]int)
	for line := range strings.Lines(string(text)) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil // it is being written
		}
		if e.Name == touchable.tool || e.Name == touchable.uri {
			counts[e]++
		}
	}
	return counts
}

// touches returns what d does to what the policy denies, as the audit log says it; ok is false
// if nothing.
func (d deviation) touches() (e entry, ok bool) {
	e = entry{Era: "legacy", Method: "tools/call", Name: touchable.tool}
	if d[envelope] == "full" { // the others count for nothing where they are served
		e.Era = "modern"
	}
	if d[verb] == "resources/read" {
		e.Method, e.Name = "resources/read", touchable.uri
	}
	isAbout := d[verb] == "tools/call" || d[verb] == "resources/read" || d[verb] == "batch"
	return e, isAbout && !strings.HasSuffix(d[body], "-params") // which name nothing
}

// TestDeviationsUnderAPolicy plays the deviations against servers behind three endpoints: an open
// one, one whose policy denies the tool and the resource that they touch, and one that serves a
// single request. What the open one serves crosses no other, and the audit log names it alike.
func TestDeviationsUnderAPolicy(t *testing.T) {
	deviations, _ := drawn(t)
	for name, sessions := range map[string]bool{"modern": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			underPolicy(t, deviations, sessions)
		})
	}
}

func underPolicy(t *testing.T, deviations []deviation, sessions bool) {
	open, closed, limited := newTouched(t, sessions), newTouched(t, sessions), newTouched(t, sessions)
	file := filepath.Join(t.TempDir(), "audit.log")
	endpoints, _ := serve(t, fmt.Sprintf(`audit: %q
servers:
  open: {url: %q}
  closed: {url: %q, policy: {default: allow, rules: [{deny: {tools: [%q], resources: ["test://*"]}}]}}
  limited: {url: %q, rate: {server: {per_second: 0.001, burst: 1}}}
`, file, open.url, closed.url, touchable.tool, limited.url))
	c := newClient(t)
	want, calls, reads := make(map[entry]int), int64(0), int64(0)
	for _, d := range deviations {
		var got [3]outcome
		for i, name := range []string{"open", "closed", "limited"} {
			at := touchable
			at.url = endpoints + name
			var err error
			if got[i], err = at.play(t.Context(), c, d); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		e, ok := d.touches()
		refused := strings.Contains(got[1].text, "policy")
		if ok && got[0].taken && !refused {
			t.Errorf("%s: %v %s, want that the policy refuses it", d, got[1], got[1].text)
		}
		if ok && refused { // what a server refuses by itself is served up to there, too
			for e.Server, e.Decision = range map[string]string{"open": "allow", "closed": "deny"} {
				want[e]++
			}
		}
		if ok && got[0].taken && d[verb] == "resources/read" {
			reads++
		} else if ok && got[0].taken {
			calls++
		}
		if ok && got[1].taken || strings.Contains(got[1].text, `"name":"touch"`) {
			t.Errorf("%s: %v %s, want nothing of what is denied", d, got[1], got[1].text)
		}
	}
	if calls < 5 || reads < 5 || open.calls.Load() != calls || open.reads.Load() != reads {
		t.Errorf("without a policy %d calls and %d reads arrived, want %d and %d, and some", open.calls.Load(), open.reads.Load(), calls, reads)
	}
	if n := closed.calls.Load() + closed.reads.Load(); n > 0 {
		t.Errorf("%d requests crossed the policy", n)
	}
	if n := limited.calls.Load() + limited.reads.Load(); n > 1 {
		t.Errorf("%d requests crossed a rate that lets one pass", n)
	}
	wantAudit(t, file, want)
}

// wantAudit holds the audit log against what the endpoints have answered.
func wantAudit(t *testing.T, file string, want map[entry]int) {
	t.Helper()
	rig.Until(t, time.Minute, "the audit log", func() string {
		got := audited(t, file)
		maps.DeleteFunc(got, func(e entry, _ int) bool { return e.Server == "limited" })
		if maps.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("it has %v, want %v", got, want)
	})
}
