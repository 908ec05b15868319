package client

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// Of all that is logged, a person who asks a server once is told of the text that the server writes
// where messages belong: without secrets, and on one line.
func TestStrayLog(t *testing.T) {
	var out bytes.Buffer
	log := StrayLog(&out, func(text string) string { return strings.ReplaceAll(text, "s3cret", "[hidden]") }).With("era", "legacy", "upstream", "notes").WithGroup("more")
	for _, tt := range []struct {
		name string
		log  func()
		want string
	}{
		{"a line", func() { log.Warn(transport.MsgStray, transport.StrayLine, "key s3cret\x1b[2J", "bytes", 10) },
			`mcpbridge: notes wrote "key [hidden]\x1b[2J" to its standard output, where only messages belong; the line is skipped` + "\n"},
		{"no message at all", func() { log.Warn(transport.MsgMute, transport.StrayLine, "key s3cret", "for", 10) },
			`mcpbridge: notes has written text, such as "key [hidden]", but no message for 10 s: does it speak MCP on its standard output?` + "\n"},
		{"a line after the first", func() { log.Info(transport.MsgStray, transport.StrayLine, "another") }, ""},
		{"anything else", func() { log.Error("server can't start, trying again", slog.String("error", "nosuch")) }, ""},
	} {
		out.Reset()
		if tt.log(); out.String() != tt.want {
			t.Errorf("%s: it says %q, want %q", tt.name, out.String(), tt.want)
		}
	}
}
