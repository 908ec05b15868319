package names

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Changes reports whether a list of such things may have to be changed for clients.
func (m *Map) Changes(k policy.Kind) bool { return m != nil && m.parts[k] != nil }

// Item returns an item of a list, in whose member called at is its own name, as clients see it:
// the item itself if nothing of it changes. All bytes but those of its name and its description
// stay. The error is ErrHidden, or a *ClashError.
func (m *Map) Item(k policy.Kind, at string, item []byte) ([]byte, error) {
	if !m.Changes(k) {
		return item, nil
	}
	p, v := m.parts[k], wire.Get(item, at)
	if len(v) == 0 || v[0] != '"' {
		if p.filters {
			return nil, ErrHidden // it could not be used
		}
		return item, nil
	}
	own := wire.Unquote(v)
	shown, err := m.Shown(k, own)
	if err != nil {
		return nil, err
	}
	text, described := p.describe[own]
	switch {
	case shown == own && !described:
		return item, nil
	case !described:
		return Renamed(item, at, shown), nil
	case shown == own:
		return wire.AppendReplaced(nil, item, wire.Edit{Name: "description", Value: wire.Quote(text)}), nil
	}
	return wire.AppendReplaced(nil, item,
		wire.Edit{Name: at, Value: wire.Quote(shown)},
		wire.Edit{Name: "description", Value: wire.Quote(text)}), nil
}

// Renamed returns an item of a list with another name, in its member called at.
func Renamed(item []byte, at, name string) []byte {
	return wire.AppendReplaced(nil, item, wire.Edit{Name: at, Value: wire.Quote(name)})
}

// Params returns params of a request about a tool or a prompt with its name.
func Params(method string, params []byte, name string) []byte {
	edit := wire.Edit{Name: "name", Value: wire.Quote(name)}
	if method == spec.MethodComplete {
		ref := wire.AppendReplaced(nil, wire.Get(params, "ref"), edit)
		edit = wire.Edit{Name: "ref", Value: ref}
	}
	return wire.AppendReplaced(nil, params, edit)
}

// Unknown returns the error that says that there is nothing of the name that an operation is
// about: the same one whether a server has it or not.
//
// Spec: 2026-07-28 and 2025-11-25, server/tools, Error Handling; server/prompts, Error
// Handling; server/resources, Error Handling.
func Unknown(era spec.Era, op *policy.Operation) *wire.Error {
	kind, name := op.About()
	if kind != policy.Resource {
		return wire.Errorf(spec.CodeInvalidParams, "Unknown %s: %s", kind, mcp.Shorten(name))
	}
	code := int64(spec.CodeInvalidParams)
	if era == spec.Legacy && op.Method != spec.MethodComplete {
		code = spec.CodeResourceNotFound
	}
	we := wire.Errorf(code, "Resource not found")
	we.Data = wire.AppendEdited(nil, nil, wire.Edit{Name: "uri", Value: wire.Quote(name)})
	return we
}
