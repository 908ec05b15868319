package router

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/peer"
)

// maxUnread is what package forward reads of a body for the id of an error, in bytes.
const maxUnread = 32 << 10

// A replica that breaks off has the log say so once, however many requests it leaves without a
// response.
func TestUnansweredForwardsAreLoggedOnce(t *testing.T) {
	all := newReplicas(t, 2, nil)
	r := all[0]
	all[1].breakOff()
	session := "1" + all[1].peers.Self().Instance + "-x"
	const callBody = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}`
	for range 5 {
		if a := r.send(t, http.MethodPost, callBody, sessionHeaders(session)); a.status != http.StatusBadGateway {
			t.Errorf("= %+v, want 502", a)
		}
	}
	if n := strings.Count(r.logs.String(), "forwarded request without a response"); n != 1 {
		t.Errorf("%d log lines, want 1:\n%s", n, r.logs)
	}
}

// breakOff has a replica break off whatever other replicas send, but hellos.
func (r *replica) breakOff() {
	whole := r.g.PeerHandler()
	instead := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != peer.HelloPath {
			panic(http.ErrAbortHandler)
		}
		whole.ServeHTTP(w, req)
	})
	r.instead.Store(&instead)
}

// Only what may have taken effect, and must not a second time, is 502: the rest may be sent again.
func TestUnansweredMayBeSentAgain(t *testing.T) {
	all := newReplicas(t, 2, nil)
	r := all[0]
	all[1].breakOff()
	session := "1" + all[1].peers.Self().Instance + "-x"
	post := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":"q","method":"` + method + `","params":` + params + `}`
	}
	for _, tt := range []struct {
		what, method, body string
		status             int
	}{
		{"a call", "POST", post("tools/call", `{"name":"t"}`), 502},
		{"a log level", "POST", post("logging/setLevel", `{"level":"info"}`), 502},
		{"a subscription", "POST", post("resources/subscribe", `{"uri":"a:b"}`), 502},
		{"an answer", "POST", `{"jsonrpc":"2.0","id":"q","result":{}}`, 502},
		{"a prompt that continues", "POST", post("prompts/get", `{"name":"p","requestState":"s"}`), 502},
		{"a long list", "POST", post("tools/list", `{"cursor":"`+strings.Repeat("x", maxUnread)+`"}`), 502}, // nobody knows that it is one
		{"a list", "POST", post("tools/list", `{}`), 503},
		{"a read", "POST", post("resources/read", `{"uri":"a:b"}`), 503},
		{"a prompt", "POST", post("prompts/get", `{"name":"p"}`), 503},
		{"a ping", "POST", post("ping", `{}`), 503},
		{"a stream", "GET", "", 503},
		{"an end", "DELETE", "", 503},
	} {
		got := r.send(t, tt.method, tt.body, sessionHeaders(session))
		if got.status != tt.status || (got.header.Get("Retry-After") != "") != (tt.status == 503) {
			t.Errorf("%s = %d %v %s, want %d", tt.what, got.status, got.header, got.body, tt.status)
		}
		id := `"id":"q"`
		if tt.body == "" || len(tt.body) > maxUnread {
			id = `"id":null`
		}
		if !strings.Contains(got.body, id) {
			t.Errorf("%s = %s, want the %s", tt.what, got.body, id)
		}
	}
}

// The errors of sessions that are nowhere have the ids of their requests.
func TestErrorsOfLostSessionsHaveIDs(t *testing.T) {
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
	if a := <-answers; a.status != http.StatusBadGateway {
		t.Errorf("a call = %d %s, want 502: it may have taken effect", a.status, a.body)
	}
}
