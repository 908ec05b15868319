package router

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// refuseInFlight answers a request that exceeds a limit on requests in flight.
func (g *Gateway) refuseInFlight(w http.ResponseWriter, r *http.Request, limit *limits.Limit, most int64) {
	refuseBusy(w, g.tooManyInFlight(r.RemoteAddr, limit, most).Err)
}

// tooManyInFlight returns the error for a request that exceeds a limit on requests in flight.
func (g *Gateway) tooManyInFlight(from string, limit *limits.Limit, most int64) *mcp.Refusal {
	g.limits.Hit(limit.Key, "request refused: too many are in flight", "downstream", from, "limit", most)
	return &mcp.Refusal{Later: true, Err: wire.Errorf(spec.CodeInternal, "%d requests are in flight, the limit; try again in a moment, or %s", most, limit.Raise())}
}

// refuseBusy answers a request that may succeed later. It does not read the rest of the
// body.
func refuseBusy(w http.ResponseWriter, e *wire.Error) {
	w.Header().Set("Connection", "close")
	downstream.WriteBusy(w, wire.ID{}, e)
}
