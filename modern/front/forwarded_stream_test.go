package front

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Filters of the four kinds are shared, and those of a legacy server narrowed.
func TestS01PlainFiltersAreShared(t *testing.T) {
	for _, c := range []struct {
		name, filter string
		era          spec.Era
	}{
		{"four kinds", `{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}`, spec.Modern},
		{"an extension that is off", `{"toolsListChanged":true,"com.example/jobs":false,"x":null}`, spec.Modern},
		{"legacy server", `{"toolsListChanged":true,"com.example/jobs":true}`, spec.Legacy},
	} {
		t.Run("S-01 "+c.name, func(t *testing.T) {
			s := moderntest.NewScript()
			s.OnServe = func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
				t.Error("the request went upstream as it is")
				return nil, io.EOF
			}
			f := moderntest.Follow(t, frontOf(t, s, behind(c.era)), "1", c.filter)
			if got := f.Next(); !strings.Contains(got, spec.NotifyAcknowledged) || strings.Contains(got, "com.example") {
				t.Errorf("event = %s, want an acknowledgment of what is shared", got)
			}
			(<-s.Listened).End(io.EOF)
		})
	}
}
