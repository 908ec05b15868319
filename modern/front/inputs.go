package front

import (
	"cmp"
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// mayPark reports whether a request may wait here for its client's answers, or
// brings them to one that does. Nothing waits before a modern server: its questions
// and the answers to them pass, with its own requestState.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Supported Requests.
func (f *Front) mayPark(ctx context.Context, req *mcp.Request) bool {
	if !spec.MayAsk(req.Method) {
		return false
	}
	isRetry := wire.GetSeldom(req.Params, "requestState") != nil
	if !isRetry && !canRequestInput(req) {
		return false
	}
	era := f.opts.Upstream()
	if era == spec.Unknown && isRetry {
		// Whose the state is depends on the server's era, for which this waits; if
		// it can't be told, the state is taken for one of ours.
		_, _ = f.opts.Describer.Describe(ctx, req)
		era = f.opts.Upstream()
	}
	return era != spec.Modern
}

// serveParkable serves a request whose handler may ask back: the first of its
// kind, or the retry that brings answers.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Basic Workflow.
func (f *Front) serveParkable(ctx context.Context, req *mcp.Request, p *reply) error {
	if wire.Get(req.Params, "requestState") == nil {
		fl, err := f.parked.start(ctx, req, p)
		if err != nil {
			return err
		}
		return fl.serveReply(ctx, req, p)
	}
	fl, st, err := f.parked.find(req)
	if err == nil {
		err = fl.resume(req, st.Round, p)
	}
	if err != nil {
		f.opts.Logger.Info("requestState refused", "upstream", f.opts.Name, "method", req.Method, "err", err)
		return stateRefusal(err)
	}
	return fl.serveReply(ctx, req, p)
}

// appendInputRequired appends the response that ends a round with questions.
//
// Spec: 2026-07-28, basic/patterns/mrtr, InputRequiredResult.
func appendInputRequired(dst []byte, id wire.ID, open []*pendingInput, state string, info []byte) []byte {
	dst = append(id.Append(append(dst, `{"jsonrpc":"2.0","id":`...)), `,"result":{"resultType":"input_required","inputRequests":{`...)
	for i, q := range open {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendString(dst, q.key), `:{"method":`...)
		dst = append(wire.AppendString(dst, q.request.Method), `,"params":`...)
		// TypeScript servers ask roots/list without params, which may be left
		// out; go-sdk v1.8.0's client can't read a question that has none.
		dst = append(append(dst, cmp.Or(string(q.request.Params), "{}")...), '}')
	}
	dst = wire.AppendString(append(dst, `},"requestState":`...), state)
	if info != nil {
		dst = append(append(dst, `,"_meta":{"`+spec.MetaServerInfo+`":`...), info...)
		dst = append(dst, '}')
	}
	return append(dst, "}}"...)
}
