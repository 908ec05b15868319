package back

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// An envelope has the values that the gateway puts into a request's _meta. Empty ones stay
// as the client sent them.
type envelope struct {
	revision     spec.Revision
	capabilities json.RawMessage
	info         json.RawMessage
	level        spec.LogLevel
	token        int64           // the progress token
	peer         []wire.Edit     // what another replica is told; nil for a server
	trace        *trace.Exchange // has the context of the trace; nil keeps the client's
	whole        bool            // the client has no envelope: empty values are removed
}

// envelopeOf returns the envelope of a request with an id. A modern client's own envelope
// keeps the client's info and log level.
func (b *Back) envelopeOf(req *mcp.Request, level spec.LogLevel, id int64) envelope {
	e := envelope{revision: b.revision(), whole: req.Era != spec.Modern}
	if req.ProgressToken != nil {
		e.token = id
	}
	capabilities := firstOf(req.Capabilities, req.Profile.Capabilities)
	if b.opts.Peer != nil {
		e.peer = b.opts.Peer.Meta(req.Profile)
	}
	if e.whole {
		declared := firstOf(req.Profile.Capabilities, capabilities)
		if e.capabilities = declared; b.opts.Peer == nil { // another replica finds the profile by them
			e.capabilities = mcp.WithoutTasks(declared, b.hiddenFrom(req.Era), protocol.WithoutListChanged(declared)...)
		}
		e.info = firstOf(req.ClientInfo, req.Profile.ClientInfo, b.opts.ClientInfo)
		e.level = level
	} else if edits := mcp.Hiding(capabilities, b.hide); len(edits) > 0 {
		e.capabilities = wire.AppendEdited(nil, capabilities, edits...)
	}
	return e
}

// upstreamParams converts the params of a client's request for the server. It keeps a
// modern client's envelope except for what depends on the connection. For a legacy client
// it adds an envelope, and removes the request for a task of 2025-11-25. All other members
// keep their bytes. It uses space for the result if that is large enough.
//
// Spec: 2026-07-28, basic/index, _meta.
func upstreamParams(space []byte, req *mcp.Request, e envelope, more []wire.Edit) []byte {
	within := transport.GetBuffer(0)
	defer transport.PutBuffer(within)
	edits := append(make([]wire.Edit, 0, 4), wire.Edit{Name: "_meta", Value: e.edit(within, wire.Get(req.Params, "_meta"))})
	if req.Era != spec.Modern {
		edits = append(edits, wire.Edit{Name: "task"}, wire.Edit{Name: "inputResponses"}, wire.Edit{Name: "requestState"})
		for _, m := range more {
			i := slices.IndexFunc(edits, func(e wire.Edit) bool { return e.Name == m.Name })
			edits[i].Value = m.Value
		}
	}
	return wire.AppendEdited(space, req.Params, edits...)
}

// edit returns _meta with the envelope. It uses space for the result if that is large enough.
func (e envelope) edit(space, meta []byte) []byte {
	edits := append(make([]wire.Edit, 0, 8), e.peer...)
	set := func(name string, value []byte) {
		if value != nil || e.whole {
			edits = append(edits, wire.Edit{Name: name, Value: value})
		}
	}
	set(spec.MetaProtocolVersion, wire.Quote(string(e.revision)))
	set(spec.MetaClientCapabilities, e.capabilities)
	set(spec.MetaClientInfo, e.info)
	set(spec.MetaLogLevel, quoted(string(e.level)))
	if e.token != 0 {
		set(spec.MetaProgressToken, strconv.AppendInt(nil, e.token, 10))
	}
	return e.trace.AppendMeta(space, meta, edits...)
}

// quoted returns s as JSON, or nil if it is empty.
func quoted(s string) []byte {
	if s == "" {
		return nil
	}
	return wire.Quote(s)
}

// firstOf returns the first text that is not nil.
func firstOf(texts ...json.RawMessage) json.RawMessage {
	for _, t := range texts {
		if t != nil {
			return t
		}
	}
	return nil
}

// hiddenFrom returns the names of extensions that are not forwarded for requests of an
// era. Only modern clients can use tasks of the server; see declaring for calls that are run as one.
func (b *Back) hiddenFrom(era spec.Era) []string {
	if era == spec.Legacy {
		return b.hideTasks
	}
	return b.hide
}

// visibleTo returns a server's capabilities for the client of a request, without those that are
// not forwarded. Who may hold tasks sees that the server has some.
func (b *Back) visibleTo(capabilities json.RawMessage, req *mcp.Request) json.RawMessage {
	hide := b.hiddenFrom(req.Era)
	if b.held.offers(req) {
		hide = b.hide
	}
	if edits := mcp.Hiding(capabilities, hide); len(edits) > 0 {
		return wire.AppendEdited(nil, capabilities, edits...)
	}
	return capabilities
}
