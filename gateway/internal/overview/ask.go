package overview

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Principal is on whose behalf the requests are that the admin address sends.
const Principal = mcp.AdminPrincipal

// What the requests say of their sender.
//
// Spec: 2026-07-28, basic/index, _meta.
var (
	client = []byte(`{"name":"mcpbridge-admin","version":"1"}`)
	meta   = []byte(`{"` + spec.MetaProtocolVersion + `":"` + string(spec.Revisions(spec.Modern)[0]) + `","` + spec.MetaClientInfo + `":` + string(client) + `,"` + spec.MetaClientCapabilities + `":{}}`)
)

// Share is whose limits the requests of the admin address count towards.
func Share() mcp.Share { return mcp.Share{Principal: Principal} }

// Ask sends a request to a server, for a list or tools/call, for whoever uses the admin
// address or runs a command: as a client of the newest revision without capabilities, so that the server can't
// ask it anything. admit sets the profile of a request, or refuses it.
func Ask(ctx context.Context, admit func(*mcp.Request) error, s mcp.Handler, memory mcp.Memory, method string, params json.RawMessage) (json.RawMessage, error) {
	if !spec.Lists(method) && method != spec.MethodToolsCall {
		return nil, wire.Errorf(spec.CodeMethodNotFound, "%q can't be sent from the admin address, only requests for lists and %s", method, spec.MethodToolsCall)
	}
	req := &mcp.Request{
		Method: method, Params: wire.AppendEdited(nil, params, wire.Edit{Name: "_meta", Value: meta}), Observed: mcp.Observed{ID: wire.StringID(method)},
		Era: spec.Modern, Revision: spec.Revisions(spec.Modern)[0], Capabilities: []byte("{}"), ClientInfo: client,
		Principal: Principal, Share: Share(), Memory: memory,
	}
	result, err := serve(ctx, admit, s, req)
	if err == nil {
		req.Trace.Sent(result)
	}
	req.Trace.End(err)
	return result, err
}

func serve(ctx context.Context, admit func(*mcp.Request) error, s mcp.Handler, req *mcp.Request) (json.RawMessage, error) {
	if err := admit(req); err != nil {
		return nil, err
	}
	req.Trace.Received(req.Params)
	res, err := s.Serve(ctx, req, mcp.Nobody{})
	if err != nil {
		return nil, err
	}
	defer res.Release()
	return slices.Clone(res.Body), nil
}
