package forward

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/mcpbridge/mcpbridge/gateway/internal/sockets"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// sinceAbsent is the first revision of replicas that authenticate clients of servers which the
// replica that was asked has not.
const sinceAbsent = 3

// An Absent is a request to a server that this replica does not have, while its configuration is
// older, or newer, than that of another one. Nobody knows yet who its client is.
type Absent struct {
	W      http.ResponseWriter
	R      *http.Request
	At     Endpoint
	Server string
	Share  mcp.Share // of the client's network
	// Room takes the room of a WebSocket, as that of a [Request] does.
	Room func() (give func(sockets.Socket), ok bool)
}

// Absent has a request answered by a living replica that has the server, which finds out who its
// client is, and where it belongs. It reports false if there is none.
func (g *Group) Absent(a *Absent) (answered bool) {
	var failed []string
	for {
		to, found := g.having(a, failed)
		if !found {
			return false
		}
		err := g.pass(a, to)
		if !isGone(err) {
			return true
		}
		failed = append(failed, to.Instance)
	}
}

// having returns a replica that has the server of a request: the one that the request's session
// names, if it has it.
func (g *Group) having(a *Absent, but []string) (to replicas.Replica, found bool) {
	view := g.opts.Peers.View()
	var all, staying []replicas.Replica
	for _, r := range view.Members {
		if r.Instance == view.Self.Instance || r.Revision < sinceAbsent || !r.Servers.Has(a.Server) || slices.Contains(but, r.Instance) {
			continue
		}
		if r.Instance == holderOf(&Request{R: a.R, At: a.At}) {
			return r, true
		}
		if all = append(all, r); !r.Draining {
			staying = append(staying, r)
		}
	}
	switch {
	case len(staying) > 0:
		return staying[rand.IntN(len(staying))], true
	case len(all) > 0:
		return all[rand.IntN(len(all))], true
	}
	return to, false
}

// pass passes a request to a replica that has its server. The error says that the replica is gone,
// or has the server no more.
func (g *Group) pass(a *Absent, to replicas.Replica) error {
	f := peer.Forward{
		To: to, Path: a.At.Path(a.Server), Sender: mcp.Sender{Share: a.Share}, Unauthenticated: true,
		Listen:  a.R.Header.Get(spec.HeaderMethod) == spec.MethodListen,
		Streams: &g.absent, Ends: []context.Context{g.opts.Streams}, WriteTimeout: g.writeTimeout(), Quiet: g.quiet(),
	}
	var err error
	if transport.IsUpgrade(a.R) {
		err = g.passSocket(a, f)
	} else {
		err = g.opts.Peers.Forward(a.W, a.R, f)
	}
	switch {
	case err == nil, errors.Is(err, downstream.ErrClientLeft):
		return nil
	case err == peer.ErrCut:
		panic(http.ErrAbortHandler) // the client must not take it for the end
	case isGone(err):
		return err
	}
	g.refuseAbsent(a, to, err)
	return nil
}

// passSocket has another replica open a WebSocket, and carries it.
func (g *Group) passSocket(a *Absent, f peer.Forward) error {
	give, ok := a.Room()
	if !ok {
		return nil
	}
	c, err := g.opts.Peers.Upgrade(a.W, a.R, f)
	if c == nil {
		give(nil)
		return err
	}
	on := newCarried(c)
	g.opts.Sockets.Add(a.Share, on)
	go func() { // ends with the connection, or with sockets.Wait
		defer give(on)
		g.carry(on, carrying{server: a.Server, from: a.R.RemoteAddr}, g.opts.Streams)
	}()
	return nil
}

// refuseAbsent answers a request whose replica has not answered.
func (g *Group) refuseAbsent(a *Absent, to replicas.Replica, err error) {
	a.W.Header().Set("Connection", "close") // the rest of the body is not read
	if unanswered := (*peer.UnansweredError)(nil); errors.As(err, &unanswered) && a.R.Method == http.MethodPost {
		downstream.WriteError(a.W, http.StatusBadGateway, wire.ID{}, wire.Errorf(spec.CodeInternal,
			"server %q: the replica that has it has not answered; the request may have taken effect: check before sending it again", a.Server))
	} else {
		downstream.WriteBusy(a.W, wire.ID{}, wire.Errorf(spec.CodeInternal, "server %q: the replica that has it does not answer; try again", a.Server))
	}
	g.unanswered.Warn(g.opts.Logger, "forwarded request without a response", "upstream", a.Server, "replica", to.Instance, "err", err)
}

// WaitStreams waits for the streams of clients that other replicas serve, since they have the
// server. When ctx ends, it cuts them off, and returns the cause.
func (g *Group) WaitStreams(ctx context.Context) error { return g.absent.Wait(ctx) }
