package router

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/gateway/internal/sockets"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// passAbsent has another replica answer a request to a server that this one does not have. It
// reports false if none has it.
func (g *Gateway) passAbsent(w http.ResponseWriter, r *http.Request, at forward.Endpoint, name string) (answered bool) {
	share := g.now().proxies.ShareOf(r, mcp.Anonymous)
	place, limit, most := g.inflight.Enter(share)
	if limit != nil {
		g.refuseInFlight(w, r, limit, most)
		return true
	}
	r, leave := downstream.Placed(r, place.Leave)
	defer leave()
	if at == forward.Events {
		r = withPrefix(r)
	}
	return g.forward.Absent(&forward.Absent{
		W: w, R: r, At: at, Server: name, Share: share,
		Room: func() (give func(sockets.Socket), ok bool) { return g.lendAbsentRoom(w, share) },
	})
}

// lendAbsentRoom takes the place of a WebSocket that another replica serves, as
// [request.lendRoom] does. The memory is the other's.
func (g *Gateway) lendAbsentRoom(w http.ResponseWriter, share mcp.Share) (give func(sockets.Socket), ok bool) {
	if _, err := g.sockets.Reserve(share); err != nil {
		refuseBusy(w, wire.Errorf(spec.CodeInternal, "%v", err))
		return nil, false
	}
	return func(c sockets.Socket) { g.sockets.Release(share, c) }, true
}

// withPrefix returns a request with the prefix of its path that a mux or a proxy has removed:
// what the client is told to post to is below the same prefix.
func withPrefix(r *http.Request) *http.Request {
	out := *r
	out.Header = r.Header.Clone()
	out.Header.Set(prefixHeader, prefixOf(r))
	return &out
}
