package front

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// checkVersionHeader compares the protocol version header with the envelope. It precedes
// all other checks, because those of a later revision are unknown. outdone says that they
// differ, and that the envelope decides.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Protocol Version Header.
func (f *Front) checkVersionHeader(h http.Header, m *wire.Message) (outdone bool, err error) {
	version := wire.Get(m.Meta, spec.MetaProtocolVersion)
	if len(version) == 0 || version[0] != '"' {
		return false, nil // readEnvelope names what is missing
	}
	got, err := singleHeader(h, spec.HeaderProtocolVersion)
	switch {
	case err != nil || wire.Says(version, got):
		return false, err
	case f.outdoes(m, version, spec.Revision(got)):
		return true, nil
	}
	return false, mismatch(spec.HeaderProtocolVersion, got, wire.Unquote(version))
}

// outdoes reports whether the envelope of a message, which names version, decides although the
// header names another revision: it is complete, its revision is served, and that of the header
// is a known legacy one.
func (f *Front) outdoes(m *wire.Message, version json.RawMessage, header spec.Revision) bool {
	return header.Known() && header.Era() == spec.Legacy && f.opts.Quirks.Tolerates(quirks.EnvelopeUnderLegacyHeader) &&
		f.checkRevision(f.revision(version), version) == nil && wire.IsObject(wire.Get(m.Meta, spec.MetaClientCapabilities))
}

// readEnvelope returns the request of a message, or an error if its envelope is invalid.
//
// Spec: 2026-07-28, basic/index, Per-request protocol fields.
func (f *Front) readEnvelope(m *wire.Message) (*mcp.Request, error) {
	req := &mcp.Request{Method: m.Method, Params: m.Params, Extra: m.Extra, Plain: m.Plain, BareMeta: true, Era: spec.Modern}
	var version json.RawMessage
	for k, v := range wire.Members(m.Meta) {
		switch {
		case k.Is(spec.MetaProtocolVersion):
			version = v
		case k.Is(spec.MetaClientCapabilities):
			req.Capabilities = v
		case k.Is(spec.MetaClientInfo):
			req.ClientInfo = v
		case k.Is(spec.MetaLogLevel):
			req.LogLevel = spec.LogLevel(wire.Unquote(v))
			if !req.LogLevel.Valid() {
				return nil, mcp.Refuse(spec.CodeInvalidParams, "_meta[%q] is %s, want one of the eight log levels, such as \"info\"", spec.MetaLogLevel, v)
			}
		case k.Is(spec.MetaProgressToken):
			req.ProgressToken = v
		default:
			req.Meta, req.BareMeta = m.Meta, false
		}
	}
	req.Revision = f.revision(version)
	if err := f.checkRevision(req.Revision, version); err != nil {
		return nil, err
	}
	return req, checkEnvelope(req, version)
}

// revision returns the revision that a JSON string names.
func (f *Front) revision(version json.RawMessage) spec.Revision {
	for _, r := range f.opts.Revisions {
		if wire.Says(version, string(r)) {
			return r
		}
	}
	return spec.Revision(wire.Unquote(version))
}

// checkRevision refuses a revision, written as version, that this front does not support.
// A missing one is left to checkEnvelope.
func (f *Front) checkRevision(r spec.Revision, version json.RawMessage) error {
	if len(version) == 0 || version[0] != '"' {
		return nil
	}
	if r.Era() == spec.Modern && r.Known() {
		return nil
	}
	return Unsupported(r, f.opts.Revisions)
}

// Unsupported returns the error for an unsupported revision, with the supported ones.
//
// Spec: 2026-07-28, basic/versioning, Protocol Version Negotiation.
func Unsupported(requested spec.Revision, supported []spec.Revision) error {
	re := &spec.RevisionError{Requested: requested, Supported: supported}
	data, err := json.Marshal(struct {
		Supported []spec.Revision `json:"supported"`
		Requested spec.Revision   `json:"requested"`
	}{supported, requested})
	if err != nil {
		return err
	}
	return &mcp.Refusal{Err: &wire.Error{Code: spec.CodeUnsupportedVersion, Message: re.Error(), Data: data}}
}

// checkEnvelope refuses an envelope without the members that the revision requires, or
// with another type.
func checkEnvelope(req *mcp.Request, version json.RawMessage) error {
	var missing []string
	if len(version) == 0 || version[0] != '"' {
		missing = append(missing, spec.MetaProtocolVersion+" (a string)")
	}
	if !wire.IsObject(req.Capabilities) {
		missing = append(missing, spec.MetaClientCapabilities+" (an object)")
	}
	if len(missing) > 0 {
		return mcp.Refuse(spec.CodeInvalidParams, "params._meta lacks %s", strings.Join(missing, " and "))
	}
	if req.ClientInfo != nil && !wire.IsObject(req.ClientInfo) {
		return mcp.Refuse(spec.CodeInvalidParams, "_meta[%q] is not an object", spec.MetaClientInfo)
	}
	if t := req.ProgressToken; t != nil {
		if _, err := wire.ParseID(t); err != nil {
			return mcp.Refuse(spec.CodeInvalidParams, "_meta.progressToken is neither a string nor a number")
		}
	}
	return nil
}
