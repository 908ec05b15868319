package projection

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// since20250618 removes elicitation and links to resources. It keeps structured content,
// which this revision added: for older clients it is an additional member, and SDKs that
// support it do so whatever revision they negotiated.
//
// Spec: 2025-06-18, changelog.
var since20250618 = boundary{
	since:  spec.Rev20250618,
	blocks: map[string]func([]byte) string{"resource_link": linkText},
	question: func(caps []byte, q mcp.InputRequest) (mcp.InputRequest, error) {
		if q.Method == spec.MethodElicit && !declares(caps, "elicitation") {
			return q, errors.New("clients can be asked for input since revision 2025-06-18")
		}
		return q, nil
	},
}

// linkText describes a link to a resource for people and models.
func linkText(block []byte) string {
	get := func(name string) string { s, _ := wire.GetString(block, name); return s }
	var b strings.Builder
	b.WriteString("Resource")
	if name := get("title"); name != "" {
		fmt.Fprintf(&b, " %q", name)
	} else if name := get("name"); name != "" {
		fmt.Fprintf(&b, " %q", name)
	}
	if typ := get("mimeType"); typ != "" {
		fmt.Fprintf(&b, " (%s)", typ)
	}
	fmt.Fprintf(&b, ": %s", get("uri"))
	if text := get("description"); text != "" {
		b.WriteString("\n" + text)
	}
	return b.String()
}
