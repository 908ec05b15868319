package back

import (
	"bytes"
	"context"
	"log/slog"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// mirrors returns the parameters of a request that headers have to mirror.
func (b *Back) mirrors(method, scope string, params []byte) []protocol.Mirror {
	if method != spec.MethodToolsCall || b.tools.Empty() {
		return nil
	}
	name, _ := wire.GetString(params, "name")
	return b.tools.Mirrors(scope, name)
}

// learn stores the header annotations of a page of tools/list. It returns the page without
// tools that have invalid annotations, as the revision requires of clients over HTTP, and
// whether it removed any.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Schema Extension.
func (b *Back) learn(scope string, page []byte) ([]byte, bool) {
	if !b.overHTTP() {
		return page, false
	}
	tools, some := wire.Get(page, "tools"), false
	if bytes.Contains(tools, []byte(protocol.HeaderAnnotation)) {
		tools, some = withoutInvalid(b.log, tools)
	}
	b.tools.Learn(scope, tools)
	if !some {
		return page, false
	}
	return wire.AppendEdited(nil, page, wire.Edit{Name: "tools", Value: tools}), true
}

// withoutInvalid returns the tools with valid annotations, and whether it removed any.
func withoutInvalid(log *slog.Logger, tools []byte) ([]byte, bool) {
	some, valid := false, []byte{'['}
	for tool := range wire.Elements(tools) {
		if reason := protocol.AnnotationFault(wire.Get(tool, "inputSchema")); reason != "" {
			name, _ := wire.GetString(tool, "name")
			log.Warn("tool left out of the list", "tool", name, "reason", reason)
			some = true
			continue
		}
		valid = append(append(valid, tool...), ',')
	}
	return wire.CloseArray(valid), some
}

// maxPages bounds how many pages are read to find one tool.
const maxPages = 64

// relist lists the tools again, up to the one that is called, and reports whether its
// headers have changed.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Client Behavior.
func (b *Back) relist(ctx context.Context, p mcp.Profile, tool string) bool {
	ctx, cancel := context.WithTimeout(ctx, b.opts.Settings.Timeouts.Own())
	defer cancel()
	before := b.tools.Mirrors(p.Scope, tool)
	b.tools.Forget(p.Scope)
	params := []byte(`{}`)
	for range maxPages {
		page, err := b.request(ctx, spec.MethodToolsList, params, p)
		if err != nil {
			b.log.Info("listing tools again", "error", err)
			return false
		}
		b.learn(p.Scope, page)
		if hasTool(page, tool) {
			return !slices.EqualFunc(before, b.tools.Mirrors(p.Scope, tool), sameMirror)
		}
		cursor := wire.Get(page, "nextCursor")
		if len(cursor) == 0 || cursor[0] != '"' {
			break
		}
		params = wire.AppendEdited(nil, nil, wire.Edit{Name: "cursor", Value: cursor})
	}
	return len(before) > 0
}

func hasTool(page []byte, name string) bool {
	for tool := range wire.Elements(wire.Get(page, "tools")) {
		if n, _ := wire.GetString(tool, "name"); n == name {
			return true
		}
	}
	return false
}

func sameMirror(a, b protocol.Mirror) bool {
	return a.Header == b.Header && slices.Equal(a.Path, b.Path)
}
