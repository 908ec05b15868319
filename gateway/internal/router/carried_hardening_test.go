package router

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/peer"
)

// The name by which a replica ends what it has opened at another one is not for clients: who has
// it could end connections of others.
func TestOpeningsAreNotTold(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 2, nil)
	other, holder, _ := d.other(t)
	for _, r := range []*replica{other, holder} {
		_, resp := r.raw(t, http.Header{peer.Opening: {"mine"}})
		if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header[peer.Opening] != nil {
			t.Errorf("a WebSocket = %d %v", resp.StatusCode, resp.Header)
		}
		c := r.openEvents(t, "/sse/peer", http.Header{peer.Opening: {"mine"}})
		if c.res.Header[peer.Opening] != nil {
			t.Errorf("a stream = %v", c.res.Header)
		}
	}
}

// Only replicas end what was opened for them, or open anything: at the peer port, and by nobody
// at that of clients.
func TestOpeningsOfStrangers(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 2, nil)
	other, holder, by := d.other(t)
	l := other.socket(t)
	l.wantFrom("1", by)
	c := other.openEvents(t, "/sse/peer", nil)
	_, id, _ := strings.Cut(c.messages, "sessionId=")
	for what, base := range map[string]string{"the peer port": holder.listener.URL, "the port of clients": holder.URL} {
		for _, path := range []string{peer.PartPath + "/peer?opening=" + id, peer.PartPath + "/peer?opening=", peer.PartPath + "/peer", peer.PartPath + "/other?opening=" + id} {
			resp, err := http.Post(base+path, "application/json", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusNoContent {
				t.Errorf("POST %s at %s = %d", path, what, resp.StatusCode)
			}
		}
	}
	ws, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(holder.listener.URL, "http")+"/mcp/peer", nil)
	if err == nil {
		ws.Close()
		t.Error("a stranger opens a WebSocket at the peer port")
	} else if resp == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a WebSocket of a stranger = %v, want 401", resp)
	}
	l.wantFrom("2", by)
	c.initialize("2024-11-05", `{}`)
}
