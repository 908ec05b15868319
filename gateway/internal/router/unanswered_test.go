package router

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// maxUnread is what package forward reads of a body for the id of an error, in bytes.
const maxUnread = 32 << 10

// The errors of sessions that are nowhere have the ids of their requests.
func TestErrorsOfLostSessionsHaveIDs(t *testing.T) {
	t.Parallel()
	r := newReplicas(t, 1, nil)[0]
	const body = `{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"t"}}`
	gone := r.send(t, http.MethodPost, body, sessionHeaders("1YYYYYYYY-x"))
	if gone.status != http.StatusNotFound || !strings.Contains(gone.body, `"id":"mine"`) {
		t.Errorf("a session of a replica that is gone = %+v", gone)
	}
	long := strings.Repeat(" ", maxUnread) + body
	if got := r.send(t, http.MethodPost, long, sessionHeaders("1YYYYYYYY-x")); got.status != http.StatusNotFound {
		t.Errorf("a long request of it = %+v", got)
	}
}

// What may be sent again, and belongs to a replica that has stopped, is served by the next one.
func TestOneReplicaStops(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 2, nil)
	other, holder, by := d.other(t)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	stopped := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop })
	holder.instead.Store(&stopped)
	holder.engine.SetFrozen(true)
	t.Cleanup(func() { holder.engine.SetFrozen(false) })
	begin := time.Now()
	answers := make(chan answer, 1)
	go func() {
		answers <- other.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"t","arguments":{}`), modernHeaders("tools/call", "t"))
	}()
	list := other.send(t, http.MethodPost, modernBody("2", "tools/list", ""), modernHeaders("tools/list", ""))
	if got := served(t, list); got == by || time.Since(begin) > 8*time.Second {
		t.Errorf("a list was served by %s after %v, want the next one", got, time.Since(begin))
	}
	switch a := <-answers; a.status { // by whether it was the first to find out
	case http.StatusBadGateway: // it may have taken effect
	case http.StatusOK:
		if got := served(t, a); got == by {
			t.Errorf("a call was served by %s", got)
		}
	default:
		t.Errorf("a call = %d %s, want 502, or that the next one has served it", a.status, a.body)
	}
}
