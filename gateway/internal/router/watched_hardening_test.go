package router

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// scopeFor returns the scope of a principal's profile.
func (r *replica) scopeFor(who string) string {
	req := &mcp.Request{Principal: mcp.Principal(who), Capabilities: []byte("{}")}
	return mcp.PlainScope(r.g.now().servers["peer"].profiles.Candidates(req)[0].Scope)
}

// postAs posts a message to a path of a port as a replica does, on behalf of a principal.
func (r *replica) postAs(t *testing.T, to replicas.Replica, path, who, body string, h http.Header) (status int, text string) {
	t.Helper()
	rt := r.peers.RoundTripper(to, func(*http.Request) mcp.Sender {
		return mcp.Sender{Share: mcp.Share{Principal: mcp.Principal(who)}, Identity: &mcp.Identity{Principal: mcp.Principal(who)}}
	})
	var res *http.Response
	eventually(t, func() bool { // one that is slow to answer is asked again, as clients do
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = h
		var silent *peer.SilentError
		if res, err = rt.RoundTrip(req); err != nil && !errors.As(err, &silent) {
			t.Fatal(err)
		}
		return err == nil
	})
	defer res.Body.Close()
	most := int64(4 << 10)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		most = 200 // it does not end by itself
	}
	all, _ := io.ReadAll(io.LimitReader(res.Body, most))
	return res.StatusCode, string(all)
}

func listenFor(scope string) string {
	body := modernBody("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["file:///d"]}`)
	return strings.Replace(body, `"_meta":{`, `"_meta":{"dev.mcpbridge/scope":"`+scope+`",`, 1)
}

// What replicas ask each other is served to nobody else: not on the public listener, nor on
// the peer listener without an envelope (CWE-306).
func TestWatchWithoutEnvelope(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, watchTogether)
	a := all[0]
	for _, path := range []string{"/peer/watch/peer", "/peer/evict"} {
		for port, want := range map[string]int{a.URL: http.StatusNotFound, a.listener.URL: http.StatusUnauthorized} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, port+path, strings.NewReader(listenFor(a.scopeFor("anonymous"))))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = modernHeaders("subscriptions/listen", "")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("POST %s = %d, want %d", path, res.StatusCode, want)
			}
		}
	}
	if s := a.g.hub.Snapshot(); s.Peers != 0 || len(a.peer.sent("resources/subscribe")) != 0 {
		t.Errorf("%+v, want nothing subscribed", s)
	}
}

// A principal's envelope opens no stream of another principal's profile (CWE-639).
func TestWatchForAnother(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, func(o *Options) { withTokens(o); watchTogether(o) })
	a, b := all[0], all[1]
	status, text := b.postAs(t, a.peers.Self(), "/peer/watch/peer", "bob", listenFor(a.scopeFor("alice")), modernHeaders("subscriptions/listen", ""))
	if status == http.StatusOK || !strings.Contains(text, "-32602") {
		t.Errorf("listen = %d %s, want it refused", status, text)
	}
	if s := a.g.hub.Snapshot(); s.Peers != 0 {
		t.Errorf("%+v, want no stream", s)
	}
	status, text = b.postAs(t, a.peers.Self(), "/peer/watch/peer", "bob", listenFor(a.scopeFor("bob")), modernHeaders("subscriptions/listen", ""))
	if status != http.StatusOK || !strings.Contains(text, "acknowledged") {
		t.Errorf("listen for its own = %d %s, want a stream", status, text)
	}
}

// The endpoint for other replicas serves listen requests alone: nothing reaches the server by
// it, whatever policy says.
func TestWatchServesListenOnly(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, watchTogether)
	a, b := all[0], all[1]
	body := modernBody("1", "tools/call", `"name":"x","arguments":{}`)
	for _, body := range []string{body, modernBody("1", "server/discover", ""), "[]", "{", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`} {
		status, text := b.postAs(t, a.peers.Self(), "/peer/watch/peer", "bob", body, modernHeaders("tools/call", "x"))
		if status == http.StatusOK || strings.Contains(text, `"result"`) {
			t.Errorf("%s = %d %s, want it refused", body, status, text)
		}
	}
	if n := len(a.peer.sent("tools/call")); n != 0 {
		t.Errorf("the server was sent %d calls", n)
	}
}

// A listener's address that another replica has now is not taken for the owner's.
func TestWatchAtAReusedAddress(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 3, watchTogether)
	a, b, c := all[0], all[1], all[2]
	wrong := replicas.Replica{Instance: a.peers.Self().Instance, Addr: c.peers.Self().Addr}
	rt := b.peers.RoundTripper(wrong, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/peer/watch/peer", strings.NewReader(listenFor(a.scopeFor("anonymous"))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = modernHeaders("subscriptions/listen", "")
	if res, err := rt.RoundTrip(req); err == nil {
		t.Errorf("another replica answered with %d", res.StatusCode)
		res.Body.Close()
	}
}
