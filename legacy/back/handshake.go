package back

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/pool"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
)

// endSession ends a session that is not in a pool.
func endSession(ctx context.Context, s pool.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	s.Close(ctx)
}

var errSlowHandshake = errors.New("it did not finish initialize within timeouts.connect")

// A handshakeRefusal reports that a server answered the handshake with an error. That
// error is not in its chain, because it does not answer the client's request.
type handshakeRefusal struct {
	text    string
	refusal *wire.Error
}

func (e *handshakeRefusal) Error() string { return e.text }

// connectError returns the error of a failed handshake: a time-out if ctx has expired, and
// a handshakeRefusal if the server refused it.
func connectError(ctx context.Context, l *link.Link, err error) error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return l.Explain(errSlowHandshake)
	}
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return &handshakeRefusal{err.Error(), refusal}
	}
	return err
}

// isRefusal reports whether a handshake failed because the server refused it. It may
// refuse this client alone.
func isRefusal(err error) bool {
	var refusal *handshakeRefusal
	var no *relay.Refusal
	var mismatch *link.RevisionMismatch
	var status *upstream.StatusError
	return errors.As(err, &refusal) || errors.As(err, &no) || errors.As(err, &mismatch) || errors.As(err, &status) && status.Code < 500
}

// provesModern returns why a handshake that failed like this proves that the server is
// modern: it names a modern revision in the error for an unsupported one. Otherwise it
// returns "".
//
// Spec: 2026-07-28, basic/versioning, Protocol Version Negotiation.
func provesModern(err error) string {
	var own *handshakeRefusal
	var relayed *relay.Refusal
	var e *wire.Error
	switch {
	case errors.As(err, &own):
		e = own.refusal
	case errors.As(err, &relayed):
		e = relayed.Err
	}
	if e == nil || e.Code != spec.CodeUnsupportedVersion {
		return ""
	}
	for v := range wire.Elements(wire.Get(e.Data, "supported")) {
		if r := spec.Revision(wire.Unquote(v)); slices.Contains(spec.Revisions(spec.Modern), r) {
			return fmt.Sprintf("it refused %s, and supports %s", spec.MethodInitialize, r)
		}
	}
	return ""
}

// handshake opens the session. Further requests name what the server answered or, if legacy is
// set, the revision as which it is used.
func (s *session) handshake(ctx context.Context, p mcp.Profile, legacy bool) error {
	c := &link.Call{Call: upstream.Call{Method: spec.MethodInitialize}, Opens: true}
	result, err := s.RoundTrip(ctx, c, s.initializeParams(p))
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if s.negotiated, err = readNegotiated(s.opts, result); err != nil {
		return err
	}
	if s.named = s.revision; !legacy && s.answered != "" {
		s.named = spec.Revision(s.answered)
	}
	s.UseRevision(s.named)
	err = s.greet(ctx)
	if s.isOdd() {
		err = s.prove(ctx, err)
	}
	if err == nil {
		s.roots.setInitialized()
	}
	return err
}

// greet ends the handshake.
func (s *session) greet(ctx context.Context) error {
	// Before initialized: some servers then send messages at once, and drop them if there
	// is no stream.
	s.Listen(ctx)
	if err := s.Notify(ctx, spec.NotifyInitialized, nil); err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	s.Initialized(ctx)
	return nil
}

func (s *session) initializeParams(p mcp.Profile) []byte {
	info := p.ClientInfo
	if info == nil {
		info = s.opts.ClientInfo
	}
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "protocolVersion", Value: wire.Quote(string(cmp.Or(p.Revision, spec.LatestLegacy)))},
		wire.Edit{Name: "capabilities", Value: declaredTo(p.Capabilities, s.opts)},
		wire.Edit{Name: "clientInfo", Value: info})
}

// negotiated is the result of initialize.
type negotiated struct {
	revision     spec.Revision // as one of which the server is used
	answered     string        // what the server said: the same, unless it is odd
	named        spec.Revision // in headers
	caps         mcp.ServerCapabilities
	serverInfo   json.RawMessage // nil if the server gave none
	instructions json.RawMessage // nil if the server gave none
}

// isOdd reports whether the server answered with a revision that has no initialize, or none.
func (n *negotiated) isOdd() bool { return n.answered != string(n.revision) }

// readNegotiated reads the result of initialize. The error is a [*link.RevisionMismatch].
func readNegotiated(o *Options, result []byte) (negotiated, error) {
	version, _ := wire.GetString(result, "protocolVersion")
	n := negotiated{revision: spec.Revision(version), answered: version}
	if !slices.Contains(spec.Revisions(spec.Legacy), n.revision) {
		mismatch := &link.RevisionMismatch{Server: o.Name, Answered: version}
		if !mismatch.Usable(o.Quirks) {
			return n, mismatch
		}
		n.revision = spec.LatestLegacy
	}
	caps := wire.Get(result, "capabilities")
	if !wire.IsObject(caps) {
		caps = []byte("{}")
	}
	n.caps = mcp.ReadServerCapabilities(caps)
	if info := wire.Get(result, "serverInfo"); wire.IsObject(info) {
		n.serverInfo = info
	}
	if text := wire.Get(result, "instructions"); len(text) > 0 && text[0] == '"' {
		n.instructions = text
	}
	return n, nil
}
