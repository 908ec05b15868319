package profile

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// Whatever differs in a part has another key, whether the text is short or long.
func TestKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	seen := make(map[key]parts)
	for _, principal := range []mcp.Principal{"a", "ab", mcp.Principal(long), mcp.Principal(long + "x")} {
		for _, session := range []string{"", "a", long} {
			for _, capabilities := range []string{"{}", `{"a":{}}`, `{"` + long + `":{}}`} {
				for _, info := range []string{"", "{}", `{"name":"` + long + `"}`} {
					p := parts{principal: principal, session: session, capabilities: []byte(capabilities), info: []byte(info)}
					k := p.key()
					if other, ok := seen[k]; ok {
						t.Errorf("%v and %v have one key", p, other)
					}
					if seen[k] = p; p.key() != k {
						t.Errorf("%v has two keys", p)
					}
				}
			}
		}
	}
}

// No two principals share a scope, unless the configuration says that all do.
func TestM2L08ScopesAreOfOnePrincipal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		isolation settings.Isolation
		shared    bool
	}{{settings.IsolatePrincipal, false}, {settings.IsolateRequest, false}, {settings.IsolateNothing, true}} {
		p, err := New(Options{Scope: "peer", Settings: settings.Server{Isolation: tt.isolation}, Era: unknown})
		if err != nil {
			t.Fatal(err)
		}
		var scopes [2]string
		for i, who := range []mcp.Principal{"ada", "bob"} {
			req := &mcp.Request{Method: "resources/read", Params: []byte(`{"uri":"u:x"}`), Principal: who}
			if err := p.Assign(req); err != nil {
				t.Fatal(err)
			}
			scopes[i] = req.Profile.Scope
		}
		if got := scopes[0] == scopes[1]; got != tt.shared {
			t.Errorf("isolation %s: two principals share results: %v, want %v", tt.isolation, got, tt.shared)
		}
	}
}

func BenchmarkKey(b *testing.B) {
	p := parts{principal: mcp.Anonymous, capabilities: []byte(`{"elicitation":{}}`)}
	b.ReportAllocs()
	for b.Loop() {
		p.key()
	}
}
