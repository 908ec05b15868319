package notebook

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxListens is how many listen streams a connection has at most.
const maxListens = 100

// A desk is what a connection of the modern era has instead of a session's state:
// its open listen streams.
type desk struct {
	ready chan struct{} // shared by the cues of all streams

	mu      sync.Mutex             // guards listens; the reader changes it, the writer looks
	listens map[string]*listenDesk // by request id, as written
}

// A listenDesk is one open listen stream.
type listenDesk struct {
	ear
	id  wire.ID
	ack []byte // the writer's; nil once written
}

// ServeModern serves one client of revision 2026-07-28 on conn, as [Notebook.Serve]
// does those before. There is no session: each request brings its envelope, and
// changes go to the listen streams that asked for them.
func (n *Notebook) ServeModern(ctx context.Context, conn transport.Conn) error {
	s := newSession(n, conn)
	s.desk = &desk{ready: s.ear.cues.ready, listens: make(map[string]*listenDesk)}
	defer s.hangUpAll()
	return s.serve(ctx)
}

// answerModern replies to one request.
func (s *session) answerModern(m *wire.Message) bool {
	failure := s.admit(m)
	if failure == nil && m.Method == spec.MethodListen {
		return s.listen(m)
	}
	var body []byte
	if failure == nil {
		body, failure = s.result(m)
	}
	if failure != nil {
		return s.reply(wire.AppendError(nil, m.ID, failure))
	}
	return s.reply(wire.AppendResult(nil, m.ID, body, nil))
}

// admit checks a request's envelope.
//
// Spec: 2026-07-28, basic/index, _meta.
func (s *session) admit(m *wire.Message) *wire.Error {
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
	Capabilities capabilities    `json:"capabilities"`
	Instructions string          `json:"instructions"`
}

// result returns a result with the members that this era adds.
//
// Spec: 2026-07-28, basic/index, Results.
func (s *session) result(m *wire.Message) ([]byte, *wire.Error) {
	var result any = discoverResult{spec.Revisions(spec.Modern), offered, instructions}
	var failure *wire.Error
	if m.Method != spec.MethodDiscover {
		result, failure = s.feature(m)
	}
	if failure != nil && failure.Code == spec.CodeResourceNotFound {
		failure.Code = spec.CodeInvalidParams
	}
	if failure != nil {
		return nil, failure
	}
	body, err := json.Marshal(result)
	if err != nil {
		return nil, wire.Errorf(spec.CodeInternal, "encoding the result: %v", err)
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

// listKinds are the filter's members and what they ask for.
var listKinds = []struct{ member, method string }{
	{"toolsListChanged", spec.NotifyToolsListChanged},
	{"resourcesListChanged", spec.NotifyResourcesListChanged},
}

// listen opens a stream: the acknowledgment first, then what changes.
//
// Spec: 2026-07-28, basic/patterns/subscriptions.
func (s *session) listen(m *wire.Message) bool {
	l := &listenDesk{id: m.ID, ear: ear{cues: newCues(s.desk.ready), lists: make(map[string]bool), subs: make(map[string]struct{})}}
	honored := l.honor(wire.Get(m.Params, "notifications"))
	l.ack = l.event(spec.NotifyAcknowledged, wire.Edit{Name: "notifications", Value: honored})
	if !s.desk.add(l) {
		return s.reply(wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInvalidRequest, "the id is in use, or %d streams are open", maxListens)))
	}
	s.nb.add(&l.ear)
	l.cues.release()
	return true
}

// honor takes what there is of the filter, and returns that.
func (l *listenDesk) honor(filter []byte) []byte {
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

// add opens a stream, unless its id is taken or there are enough.
func (d *desk) add(l *listenDesk) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listens[l.id.String()] != nil || len(d.listens) >= maxListens {
		return false
	}
	d.listens[l.id.String()] = l
	return true
}

// hangUp ends a stream whose client cancelled it. There is no answer.
func (s *session) hangUp(id []byte) {
	s.desk.mu.Lock()
	l := s.desk.listens[string(id)]
	delete(s.desk.listens, string(id))
	s.desk.mu.Unlock()
	if l != nil {
		s.nb.remove(&l.ear)
	}
}

func (s *session) hangUpAll() {
	for _, l := range s.desk.open() {
		s.hangUp([]byte(l.id.String()))
	}
}

func (d *desk) open() []*listenDesk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.listens))
}

// event returns a notification that bears the stream's id.
func (l *listenDesk) event(method string, params ...wire.Edit) []byte {
	meta := wire.AppendEdited(nil, nil, wire.Edit{Name: spec.MetaSubscriptionID, Value: l.id.Append(nil)})
	return wire.AppendNotification(nil, method, wire.AppendEdited(nil, nil, append(params, wire.Edit{Name: "_meta", Value: meta})...), nil)
}

// writeEvents writes what the streams have yet to be told, to each its
// acknowledgment first.
func (s *session) writeEvents() error {
	for _, l := range s.desk.open() {
		if err := s.writeStream(l); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) writeStream(l *listenDesk) error {
	if l.ack != nil {
		if err := s.conn.Write(l.ack); err != nil {
			return err
		}
		l.ack = nil
	}
	for q, ok := l.cues.next(); ok; q, ok = l.cues.next() {
		var params []wire.Edit
		if q.uri != "" {
			params = append(params, wire.Edit{Name: "uri", Value: wire.Quote(q.uri)})
		}
		if err := s.conn.Write(l.event(q.method, params...)); err != nil {
			return err
		}
	}
	return nil
}
