package link

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A server, or a proxy before it, that once wrote one answer too many answers each
// request on the connection with the answer to the one before.
func TestForeignAnswerEndsItsConnection(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			var behind sync.Map // id of the answer that a connection still has, by its client's address
			var shift atomic.Bool
			p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
				id := m.ID
				if late, ok := behind.Load(r.RemoteAddr); ok || shift.CompareAndSwap(true, false) {
					behind.Store(r.RemoteAddr, m.ID)
					id = wire.NumberID(99_999)
					if ok {
						id, _ = late.(wire.ID)
					}
				}
				if stream {
					legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":%s,"result":{"ok":1}}`, id)
					return
				}
				legacytest.AnswerJSON(w, id, `{"ok":1}`)
			}
			r := openHTTP(t, p)
			call := func() error {
				got, err := r.call(t.Context(), "tools/call")
				if err == nil && got != `{"ok":1}` {
					t.Errorf("result = %s", got)
				}
				return err
			}
			if err := call(); err != nil {
				t.Fatal(err)
			}
			shift.Store(true)
			if err := call(); err == nil || !strings.Contains(err.Error(), "answered another request") {
				t.Errorf("the call with another's answer: %v, want an error that says so", err)
			}
			for i := range 40 {
				if err := call(); err != nil {
					t.Errorf("call %d after it: %v, want a fresh connection", i, err)
				}
			}
		})
	}
}

// Some servers keep the requests of all sessions in one table: of two with one id they
// answer one with the other's result.
func TestIDsAreUniqueOverTheSessionsOfAnEndpoint(t *testing.T) {
	const sessions = 5
	p := legacytest.NewHTTPServer(t)
	var mu sync.Mutex
	open := make(map[string]int)
	var all sync.WaitGroup
	all.Add(sessions)
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		mu.Lock()
		open[m.ID.String()]++
		mu.Unlock()
		all.Done()
		all.Wait()
		legacytest.AnswerJSON(w, m.ID, `{"ok":1}`)
	}
	e := newHTTPRig(t, p).endpoint
	var calls sync.WaitGroup
	for range sessions {
		r := newRig(t, testOptions(p.URL))
		r.OverHTTP(e)
		r.closeAfter(t)
		r.handshake(t)
		calls.Go(func() {
			if _, err := r.call(t.Context(), "tools/call"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if len(open) != sessions {
		t.Errorf("%d calls in flight have the ids %v, want each its own", sessions, open)
	}
	for id := range open {
		if len(id) > 3 {
			t.Errorf("id %s, want a small number", id)
		}
	}
}
