package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A badge is the credentials of a replica.
type badge string

func (b badge) Authorization(context.Context, upstream.Behalf) (string, error) {
	return string(b), nil
}

func (b badge) Renew(context.Context, upstream.CredentialRefusal) (string, error) { return "", nil }

// Another replica is asked as itself: it gets neither the server's headers nor its
// credentials, and is told whose topics they are. That it refuses is told.
func TestOpenPeer(t *testing.T) {
	bridgetest.RunBubble(t, "refuses", func(t *testing.T) {
		var header http.Header
		var asked wire.Message
		srv, rt := backtest.InMemory(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header = r.Header
			body, _ := io.ReadAll(r.Body)
			asked, _ = wire.Parse(body, wire.Options{})
			backtest.Reply(w, 400, "", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"not here"}}`, asked.ID)
		}))
		o := options("http://server.example.com/mcp")
		o.Settings.Era = "legacy" // replicas are modern, whatever the server is
		o.Headers, o.Credentials = http.Header{"X-Api-Key": {"secret"}}, badge("Bearer secret")
		refused := make(chan string, 10)
		b, err := New(o).OpenPeer(upstream.Peer{
			URL: srv.URL + "/peer", RoundTripper: rt, Credentials: badge("Replica one"),
			Meta:    func(p mcp.Profile) []wire.Edit { return []wire.Edit{{Name: "scope", Value: wire.Quote(p.Scope)}} },
			Refused: func(scope string, err error) { refused <- scope + ": " + err.Error() },
			Changes: make(events, 100),
		})
		if err != nil {
			t.Fatal(err)
		}
		backtest.CloseAfter(t, b)
		_, _, err = b.Watch(t.Context(), mcp.Profile{Scope: "odd/a"}, []fanout.Topic{{Scope: "odd/a", Kind: fanout.ToolsListChanged}})
		if err == nil || !strings.Contains(err.Error(), "not here") {
			t.Errorf("Watch = %v, want the refusal", err)
		}
		if got := <-refused; !strings.HasPrefix(got, "odd/a: ") || !strings.Contains(got, "not here") {
			t.Errorf("Refused(%q), want the scope and the reason", got)
		}
		if got := header.Get("Authorization"); got != "Replica one" || header.Get("X-Api-Key") != "" || b.Era() != spec.Modern {
			t.Errorf("a %v replica was sent %v, want its own credentials alone", b.Era(), header)
		}
		if got := wire.Get(wire.Get(asked.Params, "_meta"), "scope"); asked.Method != spec.MethodListen || string(got) != `"odd/a"` {
			t.Errorf("it was sent %s %s, want a listen request with the scope", asked.Method, asked.Params)
		}
	})
	t.Run("without a URL", func(t *testing.T) {
		if b, err := New(options("")).OpenPeer(upstream.Peer{}); err == nil || b != nil {
			t.Errorf("OpenPeer = %v, %v, want an error alone", b, err)
		}
	})
}
