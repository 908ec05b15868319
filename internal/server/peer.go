package server

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// peerConnect is Timeouts.Connect for another replica: it is near.
const peerConnect = time.Second

// OpenPeer returns a back that watches the server at another replica, or has it serve requests of
// groups there: to that replica this one is a modern client. The server's own headers and credentials are not sent.
func (s *Server) OpenPeer(p upstream.Peer) (mcp.Back, error) {
	from := &s.opts.Options
	timeouts := from.Settings.Timeouts
	timeouts.Connect = peerConnect
	return asBack(modernback.New(modernback.Options{Peer: &p, Options: upstream.Options{
		Name:         from.Name,
		URL:          p.URL,
		RoundTripper: p.RoundTripper,
		Credentials:  p.Credentials,
		ClientInfo:   from.ClientInfo,
		Settings: settings.Server{
			Linger: from.Settings.Linger, Subresources: from.Settings.Subresources, Timeouts: timeouts,
		},
		Subscribes: from.Subscribes,
		Limits:     from.Limits,
		MaxMessage: from.MaxMessage,
		Logger:     from.Logger.With("through", "replica"),
		Metrics:    from.Metrics,
		Changes:    p.Changes,
	}}))
}
