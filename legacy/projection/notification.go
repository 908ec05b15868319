package projection

import (
	"bytes"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Notification returns n, which belongs to a request, for a client of rev. The message of
// a progress notification, which 2024-11-05 does not have, is kept as an additional
// member.
//
// Spec: 2026-07-28, basic/utilities/progress; server/utilities/logging.
func Notification(_ spec.Revision, n mcp.Notification) mcp.Notification {
	if !mayHaveNulls(n.Params) && !bytes.Contains(n.Params, []byte(spec.MetaPrefix)) {
		return n
	}
	out := append(make([]byte, 0, len(n.Params)), '{')
	for k, v := range wire.Members(n.Params) {
		switch {
		case k.Is("_meta"):
			out = appendMeta(out, v)
		case wire.IsNull(v) && slices.Contains(noteMembers, k.String()):
		default:
			out = append(append(out, k...), ':')
			out = append(append(out, v...), ',')
		}
	}
	n.Params = closed(out, '}')
	return n
}

// noteMembers are the optional members of progress and log messages that must not be
// null.
var noteMembers = []string{"total", "message", "logger"}
