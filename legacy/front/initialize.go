package front

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/projection"
)

// startPoll is how often a server that is starting is asked.
const startPoll = 100 * time.Millisecond

// initialize answers a handshake: from the server's description, or with the response of a
// relayed session. It returns the session, or nil if the server refused. c is the
// connection with which the session ends; nil over Streamable HTTP.
//
// Spec: 2025-11-25, basic/lifecycle, Initialization.
func (f *Front) initialize(ctx context.Context, id SessionID, m *wire.Message, sender mcp.Sender, c *Conn) (*session, []byte, error) {
	h, malformed := readHandshake(m.Params)
	s := f.newSession(id, rand.Text()[:12], sender, h, c)
	if err := s.takeMemory(); err != nil {
		return nil, nil, err
	}
	opened, answer, err := f.open(ctx, s, m, originOf(sender), malformed)
	if opened == nil {
		s.streams.Release()
	} else {
		f.tolerate(m, opened.info)
	}
	return opened, answer, err
}

// open is initialize for a session that has its memory. malformed is the error if only a
// relayed server can answer the handshake; else nil.
func (f *Front) open(ctx context.Context, s *session, m *wire.Message, from origin, malformed error) (opened *session, answer []byte, err error) {
	req := s.neutralRequest(m, from)
	defer func() {
		req.Trace.Sent(answer)
		req.Trace.End(err)
	}()
	if err := f.opts.Admit(req); err != nil {
		return nil, nil, err
	}
	req.Trace.Received(m.Text)
	switch ok, answer, err := f.relay(ctx, s, req, m); {
	case err != nil:
		return nil, nil, err
	case ok:
		return s, answer, nil
	case answer != nil:
		return nil, answer, nil
	case malformed != nil:
		return nil, nil, malformed
	}
	desc, err := f.describe(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	s.offered = mcp.ReadServerCapabilities(desc.Capabilities)
	s.offered.TaskCalls = f.offersTasks(s.revision, desc)
	return s, wire.AppendResult(nil, m.ID, f.initializeResult(s, desc), nil), nil
}

// readHandshake selects the revision: that of the client if it is a known legacy one, or
// else the newest legacy one, which the client may refuse.
func readHandshake(params []byte) (handshake, error) {
	version, ok := wire.GetString(params, "protocolVersion")
	if !ok {
		return handshake{}, wire.Errorf(spec.CodeInvalidParams, "initialize lacks params.protocolVersion, a string such as %q", spec.LatestLegacy)
	}
	h := handshake{revision: spec.Revision(version), info: wire.Get(params, "clientInfo")}
	if !slices.Contains(spec.Revisions(spec.Legacy), h.revision) {
		h.revision = spec.LatestLegacy
	}
	if !wire.IsObject(h.info) {
		h.info = nil
	}
	h.info = slices.Clone(h.info) // so that the message can be freed
	capabilities := wire.Get(params, "capabilities")
	if !wire.IsObject(capabilities) {
		capabilities = []byte("{}")
	}
	h.capabilities = projection.AppendClientCapabilities(nil, h.revision, capabilities)
	return h, nil
}

func (f *Front) describe(ctx context.Context, req *mcp.Request) (desc *mcp.Description, err error) {
	if err := f.opts.Admit(req); err != nil { // again, since the server's era may be known now
		return nil, err
	}
	err = f.whenStarted(ctx, req, func(ctx context.Context) error {
		desc, err = f.opts.Describer.Describe(ctx, req)
		return err
	})
	return desc, err
}

// whenStarted calls ask until the server has started. If the server is known to be down,
// it returns the error at once.
func (f *Front) whenStarted(ctx context.Context, req *mcp.Request, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.opts.Settings.Timeouts.Connect+startPoll) // ask has Timeouts.Connect, and returns the reason of a time-out
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil || !errors.Is(err, mcp.ErrStarting) || wake.Wait(ctx, startPoll) != nil {
			return err
		}
		if err := f.opts.Admit(req); err != nil { // again, since the server's era may be known now
			return err
		}
	}
}

// offersTasks reports whether a client of a revision can hold tasks of a server, or of members of a
// group, which tells legacy clients of the extension only if they may.
func (f *Front) offersTasks(revision spec.Revision, desc *mcp.Description) bool {
	on := f.opts.MarksTools || f.opts.Settings.Tasks.Mode == settings.TasksOn
	return on && revision == spec.Rev20251125 && mcp.Declares(wire.Get(desc.Capabilities, "extensions"), spec.ExtensionTasks)
}

// heldTasks are the tasks that a client may hold: calls that can be cancelled, and no list of them.
//
// Spec: 2025-11-25, basic/utilities/tasks, Capabilities.
const heldTasks = `{"cancel":{},"requests":{"tools":{"call":{}}}}`

func (f *Front) initializeResult(s *session, desc *mcp.Description) []byte {
	info := desc.ServerInfo
	if !wire.IsObject(info) {
		info = wire.AppendEdited(nil, nil, wire.Edit{Name: "name", Value: wire.Quote(f.opts.Name)}, wire.Edit{Name: "version", Value: []byte(`"0"`)})
	}
	capabilities := projection.AppendServerCapabilities(nil, s.revision, desc.Capabilities)
	if s.offered.TaskCalls {
		capabilities = wire.AppendEdited(nil, capabilities, wire.Edit{Name: "tasks", Value: []byte(heldTasks)})
	}
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "protocolVersion", Value: wire.Quote(string(s.revision))},
		wire.Edit{Name: "capabilities", Value: capabilities},
		wire.Edit{Name: "serverInfo", Value: info},
		wire.Edit{Name: "instructions", Value: desc.Instructions})
}
