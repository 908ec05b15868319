package forward

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// sessionAt returns the id of a session at a replica, which need not have it.
func sessionAt(r *replica) string { return "1" + r.instance + "-x" }

// breakOff breaks off whatever other replicas send.
func breakOff(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// A replica that breaks off has the log say so once, however many requests it leaves without a
// response.
func TestUnansweredForwardsAreLoggedOnce(t *testing.T) {
	_, all := newReplicas(t, 2)
	r := all[0]
	all[1].serveInstead(breakOff)
	const callBody = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}`
	for range 5 {
		if a := r.send(http.MethodPost, callBody, ofSession(sessionAt(all[1]))); a.status != http.StatusBadGateway {
			t.Errorf("= %+v, want 502", a)
		}
	}
	if n := strings.Count(r.logs.String(), "forwarded request without a response"); n != 1 {
		t.Errorf("%d log lines, want 1:\n%s", n, r.logs.String())
	}
}

// Only what may have taken effect, and must not a second time, is 502: the rest may be sent again.
func TestUnansweredMayBeSentAgain(t *testing.T) {
	_, all := newReplicas(t, 2)
	all[1].serveInstead(breakOff)
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
		{"initialize", "POST", post("initialize", `{}`), 503},
		{"a stream", "GET", "", 503},
		{"an end", "DELETE", "", 503},
	} {
		got := all[0].send(tt.method, tt.body, ofSession(sessionAt(all[1])))
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

// What a replica with other keys has refused was not done: it may be sent again, whatever it is.
func TestRefusedMayBeSentAgain(t *testing.T) {
	_, all := newReplicas(t, 2)
	if err := all[0].peers.Replace("another key of replicas"); err != nil {
		t.Fatal(err)
	}
	got := all[0].send(http.MethodPost, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}`, ofSession(sessionAt(all[1])))
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "effect") {
		t.Errorf("= %+v, want 503: nothing was done", got)
	}
	if text := all[0].logs.String(); !strings.Contains(text, "compare replicas.keys") {
		t.Errorf("the log: %s", text)
	}
}

// The errors of sessions whose replica is gone have the ids of their requests.
func TestErrorsOfGoneReplicasHaveIDs(t *testing.T) {
	_, all := newReplicas(t, 2)
	all[1].kill()
	body := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"t"}}`
	}
	for _, tt := range []struct{ what, body, id string }{
		{"a call", body(`"mine"`), `"id":"mine"`},
		{"one that is invalid", `{"jsonrpc":"2.0","id":3,"method":7}`, `"id":3`},
		{"a long one", strings.Repeat(" ", maxUnread) + body(`4`), `"id":null`},
		{"half a one", `{"jsonrpc":"2.0","id":5`, `"id":null`},
	} {
		got := all[0].send(http.MethodPost, tt.body, ofSession(sessionAt(all[1])))
		if got.status != http.StatusNotFound || !strings.Contains(got.body, tt.id) || !strings.Contains(got.body, "initialize anew") {
			t.Errorf("%s of a replica that is gone = %d %s, want 404 with %s", tt.what, got.status, got.body, tt.id)
		}
	}
}

// A response that breaks off is cut for the client as well: it must not take it for the end.
func TestCutResponseIsCut(t *testing.T) {
	_, all := newReplicas(t, 2)
	all[1].serveInstead(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "the begin")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v, want that the connection is cut", got)
		}
	}()
	t.Errorf("= %+v", all[0].send(http.MethodPost, listTools, ofSession(sessionAt(all[1]))))
}

// A brokenBody has some of a body, and ends with an error.
type brokenBody struct {
	io.Reader
	err error
}

func (b brokenBody) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err != io.EOF {
		return n, err
	}
	return 0, b.err
}

func (brokenBody) Close() error { return nil }

// A client whose body can't be read is told that, not that another replica does not answer.
func TestBodyThatCanNotBeRead(t *testing.T) {
	_, all := newReplicas(t, 2)
	req := request(t, http.MethodPost, Streamable.Path(serverName), "", ofSession(sessionAt(all[1])))
	req.Body, req.ContentLength = brokenBody{strings.NewReader("{"), errors.New("it came too slowly")}, 100
	if got := all[0].ask(req); got.status != http.StatusRequestTimeout || !strings.Contains(got.body, "too slowly") {
		t.Errorf("= %d %s, want what is wrong with the body", got.status, got.body)
	}
}

// A deadlines is a client's connection that has a deadline for reading.
type deadlines struct {
	*httptest.ResponseRecorder
	cleared int
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	if at.IsZero() {
		d.cleared++
	}
	return nil
}

// The deadline for a body ends with it, whether its length is known or not: the response may
// take longer.
func TestDeadlineOfForwardedBodyEndsWithIt(t *testing.T) {
	_, all := newReplicas(t, 2)
	all[1].adopt(sessionAt(all[1]))
	for _, length := range []int64{int64(len(listTools)), -1} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		req := request(t, http.MethodPost, Streamable.Path(serverName), listTools, ofSession(sessionAt(all[1])))
		req.ContentLength = length
		all[0].ServeHTTP(w, req)
		if w.Code != http.StatusOK || w.Body.String() != listTools || w.cleared == 0 {
			t.Errorf("a body of length %d: %d %s, the deadline was cleared %d times", length, w.Code, w.Body, w.cleared)
		}
	}
}

// A request that its session's replica did not get is served whole by the next one.
func TestForwardBodyAfterGone(t *testing.T) {
	for _, size := range []int{0, 100 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			_, all := newReplicas(t, 2)
			a, b := all[0], all[1]
			session := sessionAt(a)
			b.adopt(session) // it has not heard yet that the other ends
			a.kill()
			body := strings.Replace(listTools, `"method"`, strings.Repeat(" ", size)+`"method"`, 1)
			wantServed(t, "the first request after its replica has ended", b.send(http.MethodPost, body, ofSession(session)), b, body)
		})
	}
}

// What a client sends is served with all that it has, and as one that was forwarded.
func TestForwardWhole(t *testing.T) {
	_, all := newReplicas(t, 2)
	all[1].adopt(sessionAt(all[1]))
	got := all[0].send(http.MethodPost, listTools, ofSession(sessionAt(all[1])))
	wantServed(t, "a request of a session at another replica", got, all[1], listTools)
	if who := got.header.Get(servedFor); got.via != all[0].instance || who != string(alice) {
		t.Errorf("it came from %q, of %q, want %s and %s", got.via, who, all[0].instance, alice)
	}
}
