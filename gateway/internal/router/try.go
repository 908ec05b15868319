package router

import (
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/gateway/internal/overview"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Try serves an HTTP request to the endpoint of a server of g, as that of a client with the
// principal [overview.Principal], for whoever uses the admin address, which has decided that it
// may: the client brings no credential. Policy, rates, limits and the audit log apply. Streams end
// with the request.
func Try(g *Gateway, w http.ResponseWriter, r *http.Request, name string) {
	t := g.now()
	s := t.servers[name]
	if s == nil || !s.life.Enter() {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, t.unknownServer(name))
		return
	}
	defer s.life.Leave()
	t.bodies.Bound(w, r)
	endChunked(w, r)
	place, limit, most := g.inflight.Enter(overview.Share())
	if limit != nil {
		g.refuseInFlight(w, r, limit, most)
		return
	}
	r, leave := downstream.Placed(asClient(r, name), place.Leave)
	defer leave()
	sender := mcp.Sender{Share: overview.Share(), Arrival: arrivalOf(r, g)}
	s.answer(request{s: s, w: bound{w}, r: r, at: forward.Streamable, sender: sender}, false)
}

// own are the fields of a header that are for the admin address, and of no client.
var own = []string{"Authorization", "Cookie", "Mcpbridge-Key", "Origin", "Referer", "Upgrade"}

// asClient returns a request as a client would have sent it to the endpoint of a server.
func asClient(r *http.Request, name string) *http.Request {
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = "/mcp/"+name, "", ""
	r.RequestURI = r.URL.Path
	for _, field := range own {
		r.Header.Del(field)
	}
	return r
}

// A bound is the response to a request whose connection stays with the admin address: nothing
// takes it over.
type bound struct{ http.ResponseWriter }

// The methods that [http.ResponseController] looks for, but Hijack and Unwrap.
func (b bound) FlushError() error { return b.controller().Flush() }

func (b bound) SetReadDeadline(t time.Time) error { return b.controller().SetReadDeadline(t) }

func (b bound) SetWriteDeadline(t time.Time) error { return b.controller().SetWriteDeadline(t) }

func (b bound) controller() *http.ResponseController {
	return http.NewResponseController(b.ResponseWriter)
}
