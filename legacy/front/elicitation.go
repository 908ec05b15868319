package front

import (
	"context"
	"errors"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxVisits bounds the elicitations of a session that are waited for at once. Its client may have
// sent any number of requests meanwhile.
const maxVisits = 16

// completeLater tells the client when what an error requires is complete, if it requires something
// by an elicitation: then the request can be sent again. Each is waited for by itself, since the pages
// of one session may be of several servers.
//
// Spec: 2025-11-25, client/elicitation, Completion Notifications for URL Mode Elicitation.
func (s *session) completeLater(err error) {
	page := (*mcp.PageError)(nil)
	if !errors.As(err, &page) || page.Await == nil {
		return
	}
	s.mu.Lock()
	free := len(s.visits) < maxVisits
	if free {
		s.visits = append(s.visits, page.ID)
	}
	s.mu.Unlock()
	if !free {
		s.front.limit("elicitations")
		s.front.log.Debug("client not told when an elicitation is complete: too many are open", "session", s.name, "limit", maxVisits)
		return
	}
	s.spawn(func(ctx context.Context) { // ends with the session, or with Await
		complete := page.Await(ctx)
		s.mu.Lock()
		s.visits = slices.DeleteFunc(s.visits, func(id string) bool { return id == page.ID })
		s.mu.Unlock()
		if complete {
			s.tell(ctx, wire.AppendNotification(nil, spec.NotifyElicitationComplete, wire.AppendEdited(nil, nil, wire.Edit{Name: "elicitationId", Value: wire.Quote(page.ID)}), nil))
		}
	})
}

// tell sends a notification that belongs to no call, if the client listens.
func (s *session) tell(ctx context.Context, msg []byte) {
	if s.conn != nil {
		_ = s.conn.send(msg) // the connection has ended if it fails
		return
	}
	_ = s.streams.PutAside(ctx, msg) // nobody listens, or the session ends
}
