package front

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// mayPark reports whether a request may become a parked call, or is the retry for one.
// Nothing parks if the server is modern: its input_required results and requestStates are
// forwarded. Of a group, whose members may be of either era, each requestState tells whose it is.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Supported Requests.
func (f *Front) mayPark(ctx context.Context, req *mcp.Request) bool {
	if !spec.MayAsk(req.Method) {
		return false
	}
	isRetry := req.Plain.GetSeldom(req.Params, "requestState") != nil
	switch {
	case !isRetry && !canRequestInput(req):
		return false
	case f.opts.Group && isRetry:
		state, _ := wire.GetString(req.Params, "requestState")
		return requeststate.IsSealed(state)
	case f.opts.MemberEra != nil:
		return f.opts.MemberEra(req) != spec.Modern
	}
	era := f.opts.Upstream()
	if era == spec.Unknown && isRetry {
		// The server's era decides whether the state is the server's or the gateway's.
		// Describe waits for the era; if it stays unknown, the state counts as the
		// gateway's.
		_, _ = f.opts.Describer.Describe(ctx, req)
		era = f.opts.Upstream()
	}
	return era != spec.Modern
}

// serveParkable serves a request that may park, or the retry for a parked call.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Basic Workflow.
func (f *Front) serveParkable(ctx context.Context, req *mcp.Request, p *reply) error {
	if wire.Get(req.Params, "requestState") == nil {
		c, err := f.parked.start(ctx, req, p)
		if err != nil {
			return err
		}
		return c.serveReply(ctx, req, p)
	}
	c, st, err := f.parked.find(req)
	if err == nil {
		err = c.resume(req, st.Round, p)
	}
	if err != nil {
		f.opts.Logger.Info("requestState refused", "upstream", f.opts.Name, "method", req.Method, "err", err)
		return f.stateRefusal(err)
	}
	return c.serveReply(ctx, req, p)
}

// appendInputRequired appends the input_required response that ends a round.
//
// Spec: 2026-07-28, basic/patterns/mrtr, InputRequiredResult.
func appendInputRequired(dst []byte, id wire.ID, open []*pendingInput, state string, info []byte) []byte {
	dst = append(id.Append(append(dst, `{"jsonrpc":"2.0","id":`...)), `,"result":{"resultType":"input_required","inputRequests":{`...)
	for i, q := range open {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = mcp.AppendInput(dst, q.key, q.request)
	}
	dst = wire.AppendString(append(dst, `},"requestState":`...), state)
	meta := []wire.Edit{{Name: spec.MetaServerInfo, Value: info}}
	if server := askedBy(open); server != "" {
		meta = append(meta, wire.Edit{Name: spec.MetaServer, Value: wire.Quote(server)})
	}
	if text := wire.AppendEdited(nil, nil, meta...); len(text) > len("{}") {
		dst = append(append(dst, `,"_meta":`...), text...)
	}
	return append(dst, "}}"...)
}

// askedBy returns the server of a group that asks, which is one for all questions of a call; empty
// for a single server.
func askedBy(open []*pendingInput) string {
	for _, q := range open {
		if q.request.Server != "" {
			return q.request.Server
		}
	}
	return ""
}
