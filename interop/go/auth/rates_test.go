package auth

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// python1 is the client that gives a session up at a 429. It knows no login.
var python1 = client{"python-1", func() []string { return []string{peer("bin/python-1/bin/python"), peer("python/client1.py")} }, "2025-11-25"}

// TestF12ClientsKeepTheirSession has each client call a tool more often than it may: it is told
// when to try again, its session goes on, and once it has waited the tool works.
func TestF12ClientsKeepTheirSession(t *testing.T) {
	takeTurn(t)
	server := newServer(t)
	tried := append(slices.Clone(eras), python1)
	config := "servers:\n"
	for n := range tried { // the rate of a server is that of one client then
		config += fmt.Sprintf("  s%d: {url: %q, rate: {tools: {test_simple_text: {per_second: 0.25}}}}\n", n, server)
	}
	bridge := newBridge(t, config)
	for n, c := range tried {
		t.Run(c.name, func(t *testing.T) {
			s := c.begin(t)
			c.enter(t, s, bridge.endpoint(fmt.Sprint("s", n)), nil)
			err := try(t.Context(), s, "tools/call", simpleCall, nil)
			for end := time.Now().Add(time.Minute); err == nil && time.Now().Before(end); { // it came after the pause of the one before
				err = try(t.Context(), s, "tools/call", simpleCall, nil)
			}
			if err == nil || c.revision != "2026-07-28" && !strings.Contains(err.Error(), "try again in ") {
				t.Errorf("a call too many = %v, want to be told when to try again", err)
			}
			var listed struct{ Tools []struct{ Name string } }
			request(t, s, "tools/list", map[string]any{}, &listed)
			if len(listed.Tools) == 0 {
				t.Error("then no tools are listed")
			}
			time.Sleep(4 * time.Second) // as it was told
			c.works(t, s)
		})
	}
}
