package profile

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// unknown is the era of a server that was not asked yet.
func unknown() spec.Era { return spec.Unknown }

// What is remembered of profiles is memory, until it is forgotten.
func TestProfilesDrawOnTheMemory(t *testing.T) {
	t.Parallel()
	b := budget.New(2 << 20)
	p, err := New(Options{Scope: "peer", Era: unknown, Account: b.Account("profiles")})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 * maxProfiles {
		req := &mcp.Request{Principal: mcp.Principal(fmt.Sprint(n)), Capabilities: []byte(`{"extensions":{"x":{"y":"` + strings.Repeat("x", 500) + `"}}}`)}
		if err := p.Assign(req); err != nil {
			t.Fatal(err)
		}
	}
	if n, used := p.cache.Len(), b.Used(); n > 1500 || used < int64(n)*1000 {
		t.Errorf("%d profiles of 1 KiB are remembered in half of 2 MiB, and %d bytes counted", n, used)
	}
	p.cache.Purge()
	if used := b.Used(); used > 128<<10 {
		t.Errorf("%d bytes are counted for none", used)
	}
	for range 1000 { // as requests at the same time do
		p.remember(key{}, mcp.Profile{Capabilities: make([]byte, 1000)})
	}
	if used := b.Used(); used > 192<<10 {
		t.Errorf("%d bytes are counted for one profile", used)
	}
}

// What is remembered of a profile must not grow with what its clients send (CWE-770).
func TestProfilesKeepNoTexts(t *testing.T) {
	clients, each := 64, bridgetest.Numbers(128<<10, 1<<20)
	p, err := New(Options{Scope: "peer", Era: unknown})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range clients {
		for _, name := range []string{"experimental", "extensions"} {
			text := fmt.Sprintf(`{%q:{"x%d":"%s"}}`, name, n, strings.Repeat("x", each))
			if err := p.Assign(&mcp.Request{Principal: mcp.Anonymous, Capabilities: []byte(text)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > int64(clients*each/8) {
		t.Errorf("%d profiles of %d bytes keep %d bytes, want next to none", clients, each, got)
	}
	runtime.KeepAlive(p)
}
