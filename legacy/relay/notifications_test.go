package relay_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

// A server may answer the POST of a notification only when it has heard of it what it
// wants to, from the client: whose other messages pass meanwhile.
func TestS02NotificationsThatWait(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"notifications/initialized", "notifications/roots/list_changed"} {
		t.Run("S-02 "+method, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			answers, answered := make(chan string, 1), make(chan struct{})
			ask := make(chan struct{}, 1)
			p.Get = func(w http.ResponseWriter, r *http.Request) {
				event := legacytest.StartSSE(w)
				select {
				case <-ask:
					event(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
					<-r.Context().Done()
				case <-r.Context().Done():
				}
			}
			p.On[method] = func(w http.ResponseWriter, r *http.Request, _ wire.Message) {
				ask <- struct{}{}
				select {
				case <-answered:
					w.WriteHeader(http.StatusAccepted)
				case <-r.Context().Done():
				}
			}
			p.On[""] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				answers <- string(m.Text)
				close(answered)
				w.WriteHeader(http.StatusAccepted)
			}
			l := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).line(t)
			l.Send(legacytest.OddInitialize)
			l.Next()
			begun := time.Now()
			l.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			l.Send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
			l.Want(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
			l.Send(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
			if got, want := <-answers, `{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}`; got != want {
				t.Errorf("the server got %s, want %s", got, want)
			}
			if took := time.Since(begun); took > upstream.DefaultConnectTimeout/2 {
				t.Errorf("it took %v", took)
			}
			if got := p.Order(); !strings.Contains(got, "GET notifications/initialized notifications/roots/list_changed") {
				t.Errorf("the server got %s, want the client's order", got)
			}
		})
	}
}

// A notification that is answered with a stream, which is not ours to read, has been
// taken: its client does not wait for the stream's end.
func TestS02NotificationAnsweredWithAStream(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["notifications/roots/list_changed"] = func(w http.ResponseWriter, r *http.Request, _ wire.Message) {
		legacytest.StartSSE(w)
		<-r.Context().Done()
	}
	g := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).Enter(t, "2025-06-18")
	begun := time.Now()
	r := g.Post(t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	if took := time.Since(begun); r.Status != http.StatusAccepted || took > upstream.DefaultConnectTimeout/2 {
		t.Errorf("notification = %d %s after %v, want 202 at once", r.Status, r.Body, took)
	}
}

// Where a server has given no session, 404 for a notification says nothing of one.
func TestS02RefusedWithoutSession(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Session = ""
	p.On["notifications/roots/list_changed"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		w.WriteHeader(http.StatusNotFound)
	}
	p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) }
	g := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).Enter(t, "2025-11-25")
	if r := g.Post(t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`); r.Status != http.StatusBadGateway {
		t.Errorf("notification = %d %s, want 502", r.Status, r.Body)
	}
	if r := g.Call(t, "ping", `{}`); r.Status != http.StatusOK || r.Code() != 0 {
		t.Errorf("ping after it = %d %s, want an answer", r.Status, r.Body)
	}
}
