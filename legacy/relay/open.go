package relay

import (
	"context"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// A Refusal is a server's error response to a client's own initialize.
type Refusal struct {
	Answer []byte      // the response for the client
	Err    *wire.Error // its error
}

func (e *Refusal) Error() string { return "initialize: " + e.Err.Error() }

// Open opens the session with the client's own initialize, m, which by observes. The error is
// a [*Refusal] if the server refused.
func (s *Session) Open(ctx context.Context, m *wire.Message, by *trace.Request) error {
	c := &link.Call{Call: upstream.Call{Method: spec.MethodInitialize}, Opens: true}
	ctx = c.Begin(ctx)
	if err := s.link.Calls.Add(c); err != nil {
		c.Cancel(nil)
		return err
	}
	s.early.opens(c)
	s.opts.Observe(&c.Call, by, spec.Legacy, "")
	r, err := s.link.Exchange(ctx, c, withID(s.declared(m), wire.NumberID(c.ID)))
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	answer := s.described(forClient(r, m.ID))
	version, _ := wire.GetString(r.Result, "protocolVersion")
	var failed *wire.Error
	if r.Err != nil {
		failed = upstream.KeepError(r.Err)
	}
	if !s.link.Start(r.Free) { // Free reads the rest of a stream
		r.Free()
	}
	if failed != nil {
		return &Refusal{answer, failed}
	}
	s.answer = answer
	s.link.UseRevision(spec.Revision(version)) // some clients send other requests before notifications/initialized
	return nil
}

// Answer returns the server's response to initialize, for the client.
func (s *Session) Answer() []byte { return s.answer }

// declared returns the client's initialize, with the configured roots and without what the
// configuration hides.
func (s *Session) declared(m *wire.Message) []byte {
	capabilities := wire.Get(m.Params, "capabilities")
	edits := mcp.Hiding(capabilities, s.opts.Settings.Hidden())
	if s.opts.Roots != nil {
		edits = append(edits, wire.Edit{Name: "roots", Value: []byte("{}")})
	}
	return withCapabilities(m.Text, "params", capabilities, edits)
}

// described returns the server's response to initialize without what the configuration
// hides.
func (s *Session) described(answer []byte) []byte {
	capabilities := wire.Get(wire.Get(answer, "result"), "capabilities")
	return withCapabilities(answer, "result", capabilities, mcp.Hiding(capabilities, s.opts.Settings.Hidden()))
}

// withCapabilities returns a message with edits of the capabilities in one of its members.
func withCapabilities(text []byte, member string, capabilities []byte, edits []wire.Edit) []byte {
	if len(edits) == 0 {
		return text
	}
	value := wire.AppendEdited(nil, wire.Get(text, member), wire.Edit{Name: "capabilities", Value: wire.AppendEdited(nil, capabilities, edits...)})
	return wire.AppendEdited(nil, text, wire.Edit{Name: member, Value: value})
}

// forClient returns a response with the id of the client's request.
func forClient(r upstream.Response, id wire.ID) []byte {
	if r.Text == nil { // the response could not be read
		return wire.AppendError(nil, id, r.Err)
	}
	return withID(r.Text, id)
}
