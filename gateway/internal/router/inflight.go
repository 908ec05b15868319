package router

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// refuseInFlight answers a request that exceeds a limit on requests in flight.
func (g *Gateway) refuseInFlight(w http.ResponseWriter, r *http.Request, limit *limits.Limit, most int64) {
	g.limits.Hit(limit.Key, "request refused: too many are in flight", "downstream", r.RemoteAddr, "limit", most)
	refuseBusy(w, wire.Errorf(spec.CodeInternal, "%d requests are in flight, the limit; try again in a moment, or %s", most, limit.Raise()))
}

// refuseBusy answers a request that may succeed later. It does not read the rest of the
// body.
func refuseBusy(w http.ResponseWriter, e *wire.Error) {
	w.Header().Set("Connection", "close")
	downstream.WriteBusy(w, wire.ID{}, e)
}
