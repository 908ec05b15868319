package front

import (
	"context"
	"fmt"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// visiting has each tool require a page, whose elicitation has the name of the tool as its id, and is
// complete once true comes from the function that is returned, for that id.
func (st *rig) visiting(ids ...string) (pages map[string]chan bool, awaited chan string) {
	pages, awaited = make(map[string]chan bool), make(chan string, len(ids))
	for _, id := range ids {
		pages[id] = make(chan bool)
	}
	st.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (string, error) {
		id, _ := wire.GetString(req.Params, "name")
		told := wire.Errorf(spec.CodeURLElicitation, "log in")
		return "", &mcp.PageError{Cause: told, Told: told, ID: id, Await: func(ctx context.Context) bool {
			awaited <- id
			select {
			case complete := <-pages[id]:
				return complete
			case <-ctx.Done():
				awaited <- "the end"
				return false
			}
		}}
	}
	return pages, awaited
}

func visit(t *testing.T, g *legacytest.Session, id string) {
	t.Helper()
	if got := g.Call(t, "tools/call", `{"name":"`+id+`"}`); got.Code() != spec.CodeURLElicitation {
		t.Fatalf("the call was answered with %s", got.Body)
	}
}

func completed(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"` + id + `"}}`
}

// Each elicitation is complete by itself: in a group, pages are of several servers. One that does not
// come to a login is not told of.
func TestElicitationsCompleteEachByItself(t *testing.T) {
	st := newRig(t, nil)
	pages, awaited := st.visiting("a", "b", "c", "d")
	g := st.Enter(t, "2025-11-25")
	f := g.Listen(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		visit(t, g, id)
		if got := <-awaited; got != id {
			t.Errorf("waiting for %q, want %q", got, id)
		}
	}
	pages["c"] <- false
	for _, id := range []string{"b", "a"} {
		pages[id] <- true
		if got, _ := f.Next(); got != completed(id) {
			t.Errorf("after the login of %s the client was told %s", id, got)
		}
	}
	st.Send(t, "DELETE", "", "Mcp-Session-Id", g.ID)
	if got := <-awaited; got != "the end" {
		t.Errorf("at the end of the session: waiting for %q", got)
	}
}

// So many elicitations are waited for at once, and no more, which is told.
func TestElicitationsAreLimited(t *testing.T) {
	st := newRig(t, nil)
	var ids []string
	for i := range maxVisits + 2 {
		ids = append(ids, fmt.Sprint(i))
	}
	pages, awaited := st.visiting(ids...)
	g := st.Enter(t, "2025-11-25")
	f := g.Listen(t)
	for _, id := range ids[:maxVisits+1] {
		visit(t, g, id)
	}
	for range maxVisits {
		if got := <-awaited; got == ids[maxVisits] {
			t.Errorf("waiting for %q, which is one too many", got)
		}
	}
	if got := st.Count("limit elicitations"); got != 1 {
		t.Errorf("the limit was met %d times, want 1", got)
	}
	pages["0"] <- true
	if got, _ := f.Next(); got != completed("0") {
		t.Errorf("the client was told %s", got)
	}
	last := ids[maxVisits+1]
	visit(t, g, last)
	if got := <-awaited; got != last {
		t.Errorf("waiting for %q, want %q", got, last)
	}
}
