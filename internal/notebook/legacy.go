package notebook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// empty is the result of requests without one.
var empty = json.RawMessage(`{}`)

// Serve serves one session of a revision up to 2025-11-25 on conn. It returns when the
// client ends the session, when ctx ends, or when a write exceeds the conn's time-out. It
// closes conn, and returns nil only if the client ended the session.
func (n *Notebook) Serve(ctx context.Context, conn transport.Conn) error {
	s := newSession(n, conn)
	s.handle = s.serveLegacy
	s.self = &subscriber{pending: s.pending, subs: make(map[string]struct{})}
	n.add(s.self)
	defer n.remove(s.self)
	return s.serve(ctx)
}

// legacyMethods are the requests that only this era has, except ping and initialize.
var legacyMethods = map[string]method{
	spec.MethodSubscribe:   (*session).subscribe,
	spec.MethodUnsubscribe: (*session).unsubscribe,
	spec.MethodSetLevel:    (*session).setLevel,
}

// serveLegacy returns the result of one request, or an error.
func (s *session) serveLegacy(m *wire.Message) ([]byte, *wire.Error) {
	switch {
	case m.Method == spec.MethodPing:
		return empty, nil
	case m.Method == spec.MethodInitialize:
		return s.call((*session).initialize, m)
	case s.revision == "":
		return nil, wire.Errorf(spec.CodeInvalidRequest, "%s before initialize", m.Method)
	case legacyMethods[m.Method] != nil:
		return s.call(legacyMethods[m.Method], m)
	}
	return s.call(methods[m.Method], m)
}

type initializeResult struct {
	ProtocolVersion spec.Revision   `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	ServerInfo      implementation  `json:"serverInfo"`
	Instructions    string          `json:"instructions"`
}

// initialize chooses the session's revision: the client's if it is a legacy revision, or
// else the newest one.
//
// Spec: 2025-11-25, basic/lifecycle, Version Negotiation.
func (s *session) initialize(params []byte) (any, *wire.Error) {
	version, ok := wire.GetString(params, "protocolVersion")
	switch {
	case s.revision != "":
		return nil, wire.Errorf(spec.CodeInvalidRequest, "initialize twice in a session")
	case !ok:
		return nil, missing("protocolVersion")
	case !wire.IsObject(wire.Get(params, "capabilities")):
		return nil, missing("capabilities")
	case !wire.IsObject(wire.Get(params, "clientInfo")):
		return nil, missing("clientInfo")
	}
	s.revision = spec.LatestLegacy
	if slices.Contains(spec.Revisions(spec.Legacy), spec.Revision(version)) {
		s.revision = spec.Revision(version)
	}
	return initializeResult{s.revision, capabilities, s.nb.info(), instructions}, nil
}

// setLevel sets the lowest severity of log messages that are sent.
//
// Spec: 2025-11-25, server/utilities/logging, Setting Log Level.
func (s *session) setLevel(params []byte) (any, *wire.Error) {
	name, _ := wire.GetString(params, "level")
	level := spec.LogLevel(name)
	if !level.Valid() {
		return nil, wire.Errorf(spec.CodeInvalidParams, "unknown log level %q", name)
	}
	s.level = level
	return empty, nil
}

// subscribe accepts the URI of any note, even of one that does not exist yet. URIs are
// not normalized.
func (s *session) subscribe(params []byte) (any, *wire.Error) {
	uri, ok := wire.GetString(params, "uri")
	switch {
	case !ok:
		return nil, missing("uri")
	case checkNote(strings.TrimPrefix(uri, uriPrefix), "") != nil || !strings.HasPrefix(uri, uriPrefix):
		return nil, notFound(uri)
	case !s.nb.subscribe(s.self, uri):
		return nil, wire.Errorf(spec.CodeInternal, "a session has at most %d subscriptions", maxSubscriptions)
	}
	return empty, nil
}

func (s *session) unsubscribe(params []byte) (any, *wire.Error) {
	uri, ok := wire.GetString(params, "uri")
	if !ok {
		return nil, missing("uri")
	}
	s.nb.unsubscribe(s.self, uri)
	return empty, nil
}
