package back

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// answers serves the handshake and one request with an empty result.
func answers(c *child, method string) {
	serves(c)
	m := c.peer.Want(method)
	c.peer.Result(m.ID, `{"content":[],"tools":[],"contents":[]}`)
}

// A process that has worked for a client may have state of it, and lasts as long as that
// client may still be there; one that has only been asked for lists ends after Idle.
func TestM2L02ProcessesWithStateLast(t *testing.T) {
	for _, tt := range []struct {
		name, method, params string
		wrap                 bool
		open, ended          time.Duration // after the request; ended is zero for never
	}{
		{"lists", spec.MethodToolsList, "", false, 4 * time.Minute, 6 * time.Minute},
		{"a read", spec.MethodResourcesRead, `{"uri":"x:"}`, false, 29 * time.Minute, 31 * time.Minute},
		{"a call", spec.MethodToolsCall, `{"name":"x"}`, false, 29 * time.Minute, 31 * time.Minute},
		{"a call under wrap", spec.MethodToolsCall, `{"name":"x"}`, true, 24 * time.Hour, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := transport.NewPipe()
				c := &child{Conn: near, peer: legacytest.NewConnPeer(t, far), gone: make(chan struct{})}
				l := transport.NewLauncher(func() (transport.Conn, error) {
					go answers(c, tt.method)
					return c, nil
				}, nil)
				b := newTestBack(t, Options{Options: upstream.Options{Settings: settings.Server{Idle: 5 * time.Minute}}, Launcher: l, ClientIdle: 30 * time.Minute, OneClient: tt.wrap})
				if _, err := b.Serve(t.Context(), ask(tt.method, tt.params), nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(tt.open)
				if synctest.Wait(); wake.Closed(c.gone) {
					t.Fatalf("the process has ended after %v", tt.open)
				}
				if tt.ended == 0 {
					return
				}
				time.Sleep(tt.ended - tt.open)
				if synctest.Wait(); !wake.Closed(c.gone) {
					t.Errorf("the process has not ended after %v", tt.ended)
				}
			})
		})
	}
}
