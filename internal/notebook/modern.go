package notebook

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxListens is the maximum of open listen streams per connection.
const maxListens = 100

// ServeModern serves one client of revision 2026-07-28 on conn, and ends as
// [Notebook.Serve] does. There is no session: each request has an envelope, and changes
// are sent on the listen streams that ask for them.
func (n *Notebook) ServeModern(ctx context.Context, conn transport.Conn) error {
	s := newSession(n, conn)
	s.handle = s.serveModern
	s.listens = make(map[string]*subscriber)
	s.pending.start()
	defer func() {
		for _, l := range s.listens {
			n.remove(l)
		}
	}()
	return s.serve(ctx)
}

// serveModern returns the result of one request, or an error. For a listen stream it
// returns neither.
func (s *session) serveModern(m *wire.Message) ([]byte, *wire.Error) {
	if failure := s.checkEnvelope(m); failure != nil {
		return nil, failure
	}
	switch m.Method {
	case spec.MethodListen:
		return nil, s.listen(m)
	case spec.MethodDiscover:
		return s.modernResult(discover, m)
	}
	return s.modernResult(methods[m.Method], m)
}

// checkEnvelope checks the envelope of a request.
//
// Spec: 2026-07-28, basic/index, _meta.
func (s *session) checkEnvelope(m *wire.Message) *wire.Error {
	meta := wire.Get(m.Params, "_meta")
	revision, ok := wire.GetString(meta, spec.MetaProtocolVersion)
	switch {
	case m.Method == spec.MethodInitialize:
		revision, _ = wire.GetString(m.Params, "protocolVersion")
		return unsupported(revision)
	case !ok:
		return missing("_meta." + spec.MetaProtocolVersion)
	case spec.Revision(revision) != spec.LatestModern:
		return unsupported(revision)
	case !wire.IsObject(wire.Get(meta, spec.MetaClientCapabilities)):
		return missing("_meta." + spec.MetaClientCapabilities)
	case spec.LegacyOnly(m.Method):
		return wire.Errorf(spec.CodeMethodNotFound, "unknown method %q", m.Method)
	}
	level, _ := wire.GetString(meta, spec.MetaLogLevel)
	s.level = spec.LogLevel(level)
	return nil
}

type revisions struct {
	Supported []spec.Revision `json:"supported"`
	Requested string          `json:"requested"`
}

func unsupported(requested string) *wire.Error {
	err := wire.Errorf(spec.CodeUnsupportedVersion, "unsupported revision %q", requested)
	err.Data, _ = json.Marshal(revisions{spec.Revisions(spec.Modern), requested}) // strings always encode
	return err
}

type discoverResult struct {
	Supported    []spec.Revision `json:"supportedVersions"`
	Capabilities json.RawMessage `json:"capabilities"`
	Instructions string          `json:"instructions"`
}

func discover(*session, []byte) (any, *wire.Error) {
	return discoverResult{spec.Revisions(spec.Modern), capabilities, instructions}, nil
}

// modernResult calls a method and adds the members that this era has in results.
//
// Spec: 2026-07-28, basic/index, Results.
func (s *session) modernResult(f method, m *wire.Message) ([]byte, *wire.Error) {
	body, failure := s.call(f, m)
	if failure != nil && failure.Code == spec.CodeResourceNotFound {
		failure.Code = spec.CodeInvalidParams
	}
	if failure != nil {
		return nil, failure
	}
	info, _ := json.Marshal(s.nb.info()) // strings always encode
	edits := []wire.Edit{
		{Name: "resultType", Value: wire.Quote(spec.ResultComplete)},
		{Name: "_meta", Value: wire.AppendEdited(nil, nil, wire.Edit{Name: spec.MetaServerInfo, Value: info})},
	}
	if spec.Cacheable(m.Method) {
		edits = append(edits, wire.Edit{Name: "ttlMs", Value: []byte("0")}, wire.Edit{Name: "cacheScope", Value: wire.Quote(spec.ScopePrivate)})
	}
	return wire.AppendEdited(nil, body, edits...), nil
}

// listKinds are the members of a filter for lists, and the notifications they select.
var listKinds = []struct{ member, method string }{
	{"toolsListChanged", spec.NotifyToolsListChanged},
	{"resourcesListChanged", spec.NotifyResourcesListChanged},
}

// listen opens a stream. Its first message is the acknowledgment.
//
// Spec: 2026-07-28, basic/patterns/subscriptions.
func (s *session) listen(m *wire.Message) *wire.Error {
	if s.listens[m.ID.String()] != nil || len(s.listens) >= maxListens {
		return wire.Errorf(spec.CodeInvalidRequest, "the id is in use, or %d streams are open", maxListens)
	}
	l := &subscriber{pending: s.pending, id: m.ID, lists: make(map[string]bool), subs: make(map[string]struct{})}
	l.honored = l.honor(wire.Get(m.Params, "notifications"))
	s.listens[m.ID.String()] = l
	s.pending.add(change{to: l, method: spec.NotifyAcknowledged})
	s.nb.add(l)
	return nil
}

// honor subscribes to the supported part of the filter, and returns that part.
func (l *subscriber) honor(filter []byte) []byte {
	var honored []wire.Edit
	for _, k := range listKinds {
		if bytes.Equal(wire.Get(filter, k.member), []byte("true")) {
			l.lists[k.method] = true
			honored = append(honored, wire.Edit{Name: k.member, Value: []byte("true")})
		}
	}
	var uris []string
	for raw := range wire.Elements(wire.Get(filter, "resourceSubscriptions")) {
		uri := wire.Unquote(raw)
		name, ok := strings.CutPrefix(uri, uriPrefix)
		if ok && checkNote(name, "") == nil && len(l.subs) < maxSubscriptions {
			l.subs[uri] = struct{}{}
			uris = append(uris, uri)
		}
	}
	if len(uris) > 0 {
		list, _ := json.Marshal(uris) // strings always encode
		honored = append(honored, wire.Edit{Name: "resourceSubscriptions", Value: list})
	}
	return wire.AppendEdited(nil, nil, honored...)
}

// cancel ends the stream with a request id, if it is open. A stream has no response.
func (s *session) cancel(id []byte) {
	if l := s.listens[string(id)]; l != nil {
		delete(s.listens, string(id))
		s.nb.remove(l)
		s.pending.remove(func(c change) bool { return c.to == l })
	}
}
