package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
)

// following returns an admin address that sends frames to who has the token, and ends.
func following(t *testing.T, token string, frames ...live.Frame) Address {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		ws, err := (&websocket.Upgrader{Subprotocols: []string{live.Subprotocol}}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		for _, f := range frames {
			_ = ws.WriteJSON(f)
		}
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""), time.Now().Add(time.Second))
		_, _, _ = ws.ReadMessage() // until the reader has gone
	}))
	t.Cleanup(s.Close)
	return Address{URL: s.URL}
}

// Each event is a line that can't steer the terminal; what was left out is counted, and the
// end of the gateway told.
func TestTail(t *testing.T) {
	at := time.Date(2026, time.July, 28, 12, 30, 0, 0, time.Local)
	frames := []live.Frame{{Type: "state"}, {Type: "events", Skipped: 2, Missed: 3, Events: []live.Event{
		{Time: at, Type: "call", Server: "docs", Method: "tools/call", Name: "search", Outcome: "ok", Millis: 1.5, Client: "ide \x1b[2J", Era: "modern"},
		{Time: at, Type: "change", Server: "files", Method: "tools", Followers: 4},
		{Time: at, Type: "step", Server: "docs", Method: "tools/call", Step: "asked_again", Error: "two\nlines"},
		{Time: at, Type: "call", Server: "all", Member: "docs", Method: "tools/call", Name: "docs__find", Own: "look", Outcome: "ok", Era: "legacy"},
	}}}
	call := "12:30:00.000  call    docs          tools/call  search  ok 1.50ms  ide \\x1b[2J  modern\n"
	change := "12:30:00.000  change  files         tools  4 followers\n"
	step := "12:30:00.000  step    docs          tools/call  asked again  two\\x0alines\n"
	grouped := "12:30:00.000  call    all           tools/call  docs__find  at docs as look  ok 0.00ms  legacy\n"
	const left = "… 5 more are not shown: too many per second\n"
	for _, tt := range []struct {
		name string
		o    TailOptions
		want string
	}{
		{"all", TailOptions{}, call + change + step + grouped + left},
		{"of a server", TailOptions{Server: "files"}, change + left},
		{"with the own name", TailOptions{Filter: "look"}, grouped + left},
		{"with a text", TailOptions{Filter: "SEARCH"}, call + left},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bridgetest.Log
			a := &Admin{Address: following(t, "a-token", frames...), Token: "a-token"}
			if err := a.Tail(t.Context(), &out, tt.o); err == nil || !strings.HasSuffix(err.Error(), ": it has ended") {
				t.Errorf("Tail = %v, want the end of the gateway", err)
			}
			if got := out.String(); got != tt.want {
				t.Errorf("Tail prints\n%q\nwant\n%q", got, tt.want)
			}
		})
	}
	t.Run("as JSON", func(t *testing.T) {
		var out bridgetest.Log
		a := &Admin{Address: following(t, "a-token", frames...), Token: "a-token"}
		_ = a.Tail(t.Context(), &out, TailOptions{JSON: true}) // which has ended
		if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 4 || !strings.Contains(lines[1], `"followers":4`) {
			t.Errorf("Tail prints %q, want an event on each line", lines)
		}
	})
	t.Run("without the token", func(t *testing.T) {
		err := (&Admin{Address: following(t, "a-token")}).Tail(t.Context(), new(bridgetest.Log), TailOptions{})
		if err == nil || !strings.Contains(err.Error(), "wants its admin_token") {
			t.Errorf("Tail = %v, want it to name the token", err)
		}
	})
}
