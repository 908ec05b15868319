package pool

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// asking returns a call of a client that can be asked.
func asking(scope string) *mcp.Request {
	return &mcp.Request{Method: spec.MethodToolsCall, Profile: mcp.Profile{Scope: scope, Capabilities: json.RawMessage(`{"elicitation":{}}`)}}
}

func TestM2L20Lanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLanes(2, 8)
		if err != nil {
			t.Fatal(err)
		}
		if lane, _, _ := l.Enter(t.Context(), asking("clear"), 0); lane != 0 || len(l.sets) > 0 {
			t.Errorf("a scope whose messages tell has lane %d of %d sets, want none", lane, len(l.sets))
		}
		l.Ambiguous("s")
		_, leave, _ := l.Enter(t.Context(), asking("s"), 0)
		second, leaveSecond, _ := l.Enter(t.Context(), asking("s"), 0)
		if second != 1 {
			t.Errorf("the second call has lane %d, want 1", second)
		}
		gone, cancel := context.WithCancel(t.Context())
		gaveUp, third := make(chan error, 1), make(chan int, 1)
		go func() {
			_, _, err := l.Enter(gone, asking("s"), 0)
			gaveUp <- err
		}()
		synctest.Wait()
		go func() {
			lane, leave, _ := l.Enter(t.Context(), asking("s"), 0)
			third <- lane
			leave()
		}()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; err != context.Canceled {
			t.Errorf("Enter of a call that leaves the line = %v", err)
		}
		leaveSecond()
		leaveSecond() // does nothing more
		if lane := <-third; lane != 1 {
			t.Errorf("the next in line has lane %d, want the one that is free", lane)
		}
		leave()
		if synctest.Wait(); len(l.sets) > 0 {
			t.Errorf("%d sets are kept though no lane is busy", len(l.sets))
		}
	})
}

func TestCutLane(t *testing.T) {
	p := mcp.Profile{Scope: "files/1"}
	for lane, further := range []bool{false, true} {
		if scope, ok := CutLane(OnLane(p, lane).Scope); scope != p.Scope || ok != further {
			t.Errorf("CutLane of lane %d = %q, %v", lane, scope, ok)
		}
	}
}
