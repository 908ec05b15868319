package tasks

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// mended returns the result of a tools/call of a legacy server as clients of 2026-07-28 accept it
// inside of a task, and what was mended. It says that it is complete.
//
// Spec: tasks extension 2026-07-28, Completed.
func mended(result []byte) (out []byte, met quirks.Mended) {
	out = append(make([]byte, 0, len(result)+32), `{"resultType":"complete","content":`...)
	out = append(out, '[')
	content := wire.Get(result, "content")
	if !wire.IsArray(content) {
		met.Add(quirks.ListMissing)
	}
	for e := range wire.Elements(content) {
		before := len(out)
		if out = wire.AppendWithoutNulls(out, e, mcp.ContentNonNull); len(out)-before != len(e) {
			met.Add(quirks.NullMembers)
		}
		out = append(out, ',')
	}
	out = wire.CloseArray(out)
	for k, v := range wire.Members(result) {
		switch {
		case k.Is("content"), k.Is("resultType"):
			continue
		case wire.IsNull(v) && k.Is("isError"):
			met.Add(quirks.NullMembers)
			continue
		}
		out = append(append(append(append(out, ','), k...), ':'), v...)
	}
	return append(out, '}'), met
}
