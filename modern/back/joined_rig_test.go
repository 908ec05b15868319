package back

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// before returns a front of modern clients before a back, and the script that counts
// its streams.
func before(t *testing.T, b *Back, changes ...func(*modernfront.Options)) (*modernfront.Front, *moderntest.Script) {
	t.Helper()
	s := moderntest.NewScript()
	o := modernfront.Options{Name: "s", Handler: b, Describer: s, Subscriber: s, Admit: func(req *mcp.Request) error {
		req.Profile = mcp.Profile{Scope: "s/0"}
		return nil
	}}
	o.Upstream = func() spec.Era { return spec.Modern }
	for _, change := range changes {
		change(&o)
	}
	f, err := modernfront.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f, s
}

// lineTo returns a line to a front that is before a back.
func lineTo(t *testing.T, f *modernfront.Front) *moderntest.Line {
	return moderntest.NewLine(t, func(send func([]byte) error, sender mcp.Sender) moderntest.Pipe { return f.OpenConn(send, sender) })
}
