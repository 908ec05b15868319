package interop

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// probeBound is what each question of a probe may take.
const probeBound = 10 * time.Second

// probed is what mcpbridge probe --json prints, as far as it is looked at here.
type probed struct {
	Era, Reason, Transport string
	Revisions              []string
	Server                 struct{ Name string }
	Seconds                float64
	Steps                  []struct {
		Sent, Answer, Means string
		Seconds             float64
	}
	Lists     map[string]int
	Crossings []struct{ Feature, Outcome, Why, Rule string }
}

// probe runs mcpbridge probe on a server that must have a verdict.
func probe(t *testing.T, target ...string) (p probed) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, bridgeBinary, append([]string{"probe", "--json"}, target...)...).Output()
	if err == nil {
		err = json.Unmarshal(out, &p)
	}
	if err != nil {
		t.Fatalf("probing %q: %v; it printed %s", target, err, out)
	}
	return p
}

// newServer180 serves a tool on the SDK's v1.8.0, at a URL.
func newServer180(t *testing.T, so *mcp.ServerOptions, ho *mcp.StreamableHTTPOptions) string {
	server := mcp.NewServer(&mcp.Implementation{Name: "go-1.8.0", Version: "1"}, so)
	type none struct{}
	mcp.AddTool(server, &mcp.Tool{Name: "nothing"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, none, error) {
		return &mcp.CallToolResult{}, none{}, nil
	})
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, ho))
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s.URL
}

// TestU01RealServers has mcpbridge find out what servers are that nobody here wrote,
// and how long that takes.
func TestU01RealServers(t *testing.T) {
	paths, err := absolute(nodeBinary, everythingNode, filesNode, modernNode)
	if err != nil {
		t.Fatal(err)
	}
	only := &mcp.ServerOptions{SupportedProtocolVersions: []string{revision}}
	for _, tt := range []struct {
		name     string
		target   []string
		era      string
		revision string // the first that it names, or settles on
		tools    int    // at least
	}{
		{"go-sdk v1.8.0 with sessions", []string{newServer180(t, nil, nil)}, "legacy", "2025-11-25", 1},
		{"go-sdk v1.8.0 without sessions", []string{newServer180(t, nil, &mcp.StreamableHTTPOptions{Stateless: true})}, "modern", revision, 1},
		{"go-sdk v1.8.0 of one revision", []string{newServer180(t, only, &mcp.StreamableHTTPOptions{Stateless: true})}, "modern", revision, 1},
		{"go-sdk v1.8.0 of one revision that refuses the others", []string{w.urls["modern-go"]}, "modern", revision, 1},
		{"go-sdk v1.8.0 of one revision on stdio", []string{"--", modernGo}, "modern", revision, 1},
		{"go-sdk v1.6.1", []string{w.urls["legacy-2026"]}, "legacy", "2025-11-25", 1},
		{"go-sdk v1.6.1, everything", []string{w.urls["everything-go"]}, "legacy", "2025-11-25", 1},
		{"go-sdk v1.6.1 on stdio", []string{"--", legacy2026}, "legacy", "2025-11-25", 1},
		{"TypeScript 2.4.0, legacy rejected", []string{w.urls["modern-typescript"]}, "modern", revision, 1},
		{"TypeScript 2.4.0 on stdio", []string{"--", paths[0], paths[3]}, "modern", revision, 1},
		{"server-everything", []string{w.urls["everything-http"]}, "legacy", "2025-11-25", 5},
		{"server-everything on stdio", []string{"--", paths[0], paths[1], "stdio"}, "legacy", "2025-11-25", 5},
		{"server-filesystem", []string{"--", paths[0], paths[2], t.TempDir()}, "legacy", "2025-11-25", 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := probe(t, tt.target...)
			t.Logf("%s after %.3fs: %s", p.Era, p.Seconds, p.Reason)
			for _, s := range p.Steps {
				t.Logf("  %s: %s in %.3fs %s", s.Sent, s.Answer, s.Seconds, s.Means)
			}
			if p.Era != tt.era || !slices.Contains(p.Revisions, tt.revision) || p.Server.Name == "" {
				t.Errorf("probe = %s, %q of %q, want %s with %s", p.Era, p.Revisions, p.Server.Name, tt.era, tt.revision)
			}
			if p.Seconds <= 0 || p.Seconds > 2*probeBound.Seconds() {
				t.Errorf("the verdict took %vs, want at most %v for each of two questions", p.Seconds, probeBound)
			}
			if p.Lists["tools/list"] < tt.tools || len(p.Crossings) == 0 {
				t.Errorf("%d tools and %d crossings, want %d tools at least", p.Lists["tools/list"], len(p.Crossings), tt.tools)
			}
			wantTransport := "Streamable HTTP"
			if tt.target[0] == "--" {
				wantTransport = "stdio"
			}
			if p.Transport != wantTransport {
				t.Errorf("transport = %s, want %s", p.Transport, wantTransport)
			}
			for _, c := range p.Crossings {
				if c.Why == "" || !strings.Contains(c.Rule, "-") {
					t.Errorf("crossing %+v, want a reason and a rule", c)
				}
			}
		})
	}
}
