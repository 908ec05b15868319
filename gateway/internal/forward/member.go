package forward

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// sinceMembers is the first revision of replicas that serve requests to members of groups for
// others.
const sinceMembers = 5

// A Remote is a server at another replica. Its errors are those of package peer if that can't be
// reached.
type Remote interface {
	mcp.Handler
	mcp.Describer
}

// isMember reports whether a request has come through a group. One that has not was answered where
// it belongs before it was read, by [Server.Elsewhere]: but a request to a group may be for several
// servers, whose principals are served by several replicas.
func (s *Server) isMember(req *mcp.Request) bool {
	return s.o.Remote != nil && req.Passage.At(s.o.Name) != ""
}

// serveMember serves a request that has come through a group: here, or at the replica that serves its
// principal, or that holds the call which it continues.
func (s *Server) serveMember(ctx context.Context, name string, req *mcp.Request, c mcp.Caller, next mcp.Handler) (*mcp.Result, error) {
	if text, _ := wire.GetString(req.Params, "requestState"); text != "" {
		to, holds := s.holderOf(text)
		switch {
		case holds:
			return s.o.Remote(to).Serve(ctx, req, c)
		case s.g.mayLive(peer.OfState(text)):
			return nil, s.notOurs(req, errStranger)
		}
	}
	to := s.g.placement.Find(ctx, name, s.o.HoldFor)
	for range forwards {
		if to.Instance == s.g.instance {
			return s.serveHere(ctx, name, req, c, next)
		}
		if to.Revision < sinceMembers {
			return nil, s.notOurs(req, errElsewhere)
		}
		res, err := s.o.Remote(to).Serve(ctx, req, c)
		if !isGone(err) && !isSilent(err) {
			s.g.placement.lost.forget(to.Instance)
			return res, err
		}
		var found bool
		if to, found = s.next(ctx, name, to, err); !found {
			break
		}
	}
	return nil, &mcp.Refusal{Err: s.heldError(), Later: true}
}

// serveTask serves a request about a task that an instance holds, whoever serves the principal by now: name
// is what that claims. If that instance is gone, so is the task, as is said here.
func (s *Server) serveTask(ctx context.Context, name, instance string, req *mcp.Request, c mcp.Caller, next mcp.Handler) (*mcp.Result, error) {
	to, lives := s.g.opts.Peers.Member(instance)
	switch {
	case lives && s.isMember(req):
		return s.o.Remote(to).Serve(ctx, req, c)
	case s.g.mayLive(instance):
		return nil, s.notOurs(req, errStranger)
	}
	defer s.g.placement.use(name)() // the process of the task is used
	return next.Serve(ctx, req, c)
}

// heldBy returns the instance that holds the task that a request is about; empty if it is about none,
// or one of the server's own ids.
func (s *Server) heldBy(req *mcp.Request) string {
	if !spec.OnTask(req.Method) || s.o.Back.Era() != spec.Legacy {
		return ""
	}
	return peer.OfState(taskOf(req.Params))
}

// holderOf returns the replica at which a call waits for input that another one has sent there; which may
// be this one. If it is gone, so is the call.
func (s *Server) holderOf(state string) (to replicas.Replica, holds bool) {
	instance := peer.OfState(state)
	view := s.g.opts.Peers.View()
	if instance == view.Self.Instance {
		return view.Self, true
	}
	return view.Member(instance)
}

// Describe has next describe the server to a client of a group, or the replica that serves its
// principal. If ctx has ended, nobody is waited for.
func (s *Server) Describe(ctx context.Context, req *mcp.Request, next mcp.Describer) (*mcp.Description, error) {
	name := s.claimOf(req)
	if name == "" || s.o.Remote == nil {
		return next.Describe(ctx, req)
	}
	var to replicas.Replica
	if ctx.Err() == nil {
		to = s.g.placement.Find(ctx, name, s.o.HoldFor)
	} else if c, ok := s.g.placement.opts.Claims.Holder(name); ok {
		to = c.Holder
	}
	if to.Instance == "" || to.Instance == s.g.instance || to.Revision < sinceMembers {
		return next.Describe(ctx, req)
	}
	return s.o.Remote(to).Describe(ctx, req)
}

// ServedElsewhere reports whether another replica is known to serve the principal of a request.
func (s *Server) ServedElsewhere(req *mcp.Request) bool {
	name := s.claimOf(req)
	if name == "" {
		return false
	}
	c, ok := s.g.placement.opts.Claims.Holder(name)
	return ok && c.Holder.Instance != s.g.instance
}

// claimOf returns the name by which replicas claim what the principal of a request has at the server;
// empty if nobody claims it, or the client has a session of its own there.
func (s *Server) claimOf(req *mcp.Request) string {
	if req.Session != "" && s.o.HoldFor > 0 && s.o.OwnSessions() {
		return ""
	}
	return s.claim(req.Profile.Principal)
}
