package router

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Whatever differs in a part has another key, whether the text is short or long.
func TestProfileKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	seen := make(map[profileKey]profileParts)
	for _, principal := range []mcp.Principal{"a", "ab", mcp.Principal(long), mcp.Principal(long + "x")} {
		for _, session := range []string{"", "a", long} {
			for _, capabilities := range []string{"{}", `{"a":{}}`, `{"` + long + `":{}}`} {
				for _, info := range []string{"", "{}", `{"name":"` + long + `"}`} {
					p := profileParts{principal: principal, session: session, capabilities: []byte(capabilities), info: []byte(info)}
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

func BenchmarkProfileKey(b *testing.B) {
	p := profileParts{principal: mcp.Anonymous, capabilities: []byte(`{"elicitation":{}}`)}
	b.ReportAllocs()
	for b.Loop() {
		p.key()
	}
}
