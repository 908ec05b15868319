package source

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Remote is the server at another replica, which serves what clients of groups here ask of it. To
// that replica this one is a modern client, as for what it watches. Policy, and whatever else is about
// clients, is applied here.
type Remote struct {
	s  *Source
	to replicas.Replica
}

// At returns the server at another replica.
func (s *Source) At(to replicas.Replica) Remote { return Remote{s, to} }

// Serve implements [mcp.Handler]. If the replica can't be reached, the error is that of its
// RoundTripper.
func (r Remote) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	back, err := r.back()
	if err != nil {
		return nil, err
	}
	on := &errand{sender: mcp.Sender{Share: req.Share, Identity: req.Identity}}
	res, err := back.Serve(context.WithValue(ctx, errandKey{}, on), req, c)
	if err != nil && on.failed != nil && ctx.Err() == nil {
		return nil, on.failed
	}
	return res, err
}

// Describe implements [mcp.Describer].
func (r Remote) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	back, err := r.back()
	if err != nil {
		return nil, err
	}
	return back.Describe(ctx, req)
}

// An errand is a request of a client that another replica serves.
type errand struct {
	sender mcp.Sender
	failed error // of the RoundTripper; nil if there was a response
}

type errandKey struct{}

// back returns the back of the server at the replica. It is kept while that lives.
func (r Remote) back() (mcp.Back, error) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, mcp.ErrShutdown
	}
	if t := s.remotes[r.to.Instance]; t != nil {
		return t.back, nil
	}
	t := &target{to: r.to}
	back, err := s.opts.Open(s.peerOf(t))
	if err != nil {
		return nil, err
	}
	t.watch, t.back = back, back
	s.remotes[r.to.Instance] = t
	return back, nil
}

// forgetRemotes closes what asks replicas that do not live any more.
func (s *Source) forgetRemotes(view *replicas.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for instance, t := range s.remotes {
		if _, lives := view.Member(instance); !lives {
			delete(s.remotes, instance)
			s.closeSoon(t)
		}
	}
}

// withoutPeerMeta returns a request of another replica as the server gets it.
func withoutPeerMeta(req *mcp.Request) *mcp.Request {
	sent := *req
	meta := wire.AppendEdited(nil, wire.Get(req.Params, "_meta"), ownMeta...)
	sent.Params = wire.AppendEdited(nil, req.Params, wire.Edit{Name: "_meta", Value: meta})
	return &sent
}
