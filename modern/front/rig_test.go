package front

import (
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// frontOf returns a front before s, which is closed with the test.
func frontOf(t *testing.T, s *moderntest.Script, change func(*Options)) *Front {
	t.Helper()
	o := Options{Name: "s", Handler: s, Describer: s, Subscriber: s, Settings: settings.Server{Gather: time.Millisecond}, Admit: func(req *mcp.Request) error {
		req.Profile = mcp.Profile{Scope: "s/0"}
		return nil
	}}
	if change != nil {
		change(&o)
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// lineOf returns a line to a front.
func lineOf(t *testing.T, f *Front) *moderntest.Line {
	return moderntest.NewLine(t, func(send func([]byte) error, sender mcp.Sender) moderntest.Pipe { return f.OpenConn(send, sender) })
}
