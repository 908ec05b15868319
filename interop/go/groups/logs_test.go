package groups

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// TestG15LogsBetweenCalls has server-everything log every 5 s, while no call runs: legacy clients of
// a group hear it as they do at the server's own endpoint, but for the logger, over each
// transport.
func TestG15LogsBetweenCalls(t *testing.T) {
	everything := members()[0]
	b := startBridge(t, startMembers(t, []member{everything, members()[1]}, t.TempDir()), "  all: {servers: [everything, memory]}\n")
	var tours sync.WaitGroup
	for _, c := range clients() {
		if c.modern() {
			continue // what belongs to no request reaches none, as at the server's own endpoint
		}
		tours.Go(func() {
			t.Run(c.name, func(t *testing.T) {
				v := startVisitor(t, c, b, t.TempDir(), nil)
				v.hearLogs(v.httpTarget("everything"), "", "<nil>")
				for _, to := range append(v.otherWays(b), v.httpTarget("all")) {
					v.hearLogs(to, "everything__", "everything")
				}
			})
		})
	}
	tours.Wait()
}

// hearLogs has the server log, and waits for two messages: one may come during the call that
// begins it, and the other comes between calls.
func (v *visitor) hearLogs(to remote.Target, prefix, logger string) {
	v.t.Helper()
	v.open(to)
	v.Messages.Clear()
	if _, err := v.ask("logging/setLevel", map[string]any{"level": "debug"}, false); err != nil {
		v.t.Fatal(err)
	}
	toggle := func() {
		if _, err := v.ask("tools/call", map[string]any{"name": prefix + "toggle-simulated-logging", "arguments": map[string]any{}}, false); err != nil {
			v.t.Fatal(err)
		}
	}
	toggle()
	for n := range 2 {
		m, ok := v.Messages.Take(answerTime)
		params, _ := m.(map[string]any)
		if data := fmt.Sprint(params["data"]); !ok || !strings.Contains(data, "message") || fmt.Sprint(params["logger"]) != logger {
			v.t.Fatalf("%s: message %d is %v, want one of the logger %s", to.Transport, n, m, logger)
		}
	}
	toggle()
	v.shut()
}
