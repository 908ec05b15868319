package day

import (
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// placeServers are published servers that lock nothing, and what a call is and returns: {n} is its
// number. That of npm takes half a second to start: few calls follow there, unless DAY=full.
var placeServers = map[string]struct {
	argv                   []string
	tool, arguments, wants string
	then                   int
	keep                   bool // also without DELETE
}{
	"go":  {[]string{bin("everything-v1.6.1")}, "test_simple_text", `{}`, "This is a simple text response for testing.", 100, true},
	"npm": {[]string{node("node"), node("mcp-server-everything"), "stdio"}, "get-sum", `{"a": {n}, "b": 0}`, "The sum of {n} and 0 is {n}.", 5, full()},
}

// node returns a program of interop/node.
func node(name string) string { return bin("../node/node_modules/.bin/" + name) }

// TestPlaces has langchain-mcp-adapters, which opens a session for each call, make 20 calls side
// by side, then more one after another (200 with DAY=full), through the 16 places of a principal: ending its sessions,
// and never ending them. All calls have their results.
func TestPlaces(t *testing.T) {
	for name, s := range placeServers {
		then := s.then
		if full() {
			then = 200
		}
		for _, end := range []string{"DELETE", "keep"} {
			if end == "keep" && !s.keep {
				continue
			}
			t.Run(name+"/"+end, func(t *testing.T) {
				t.Parallel()
				to := serveCommand(t, t.TempDir(), s.argv, "5m")
				began := time.Now()
				out, err := exec.CommandContext(t.Context(), bin("python-langchain/bin/python"), "../../python/langchain_calls.py",
					to.URL, "20", strconv.Itoa(then), s.tool, s.arguments, s.wants, end).CombinedOutput()
				if err != nil {
					t.Errorf("%v:\n%s", err, out[:min(len(out), 8000)])
				}
				t.Logf("20 calls side by side and %d more in %v", then, time.Since(began))
			})
		}
	}
}
