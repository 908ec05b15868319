package front

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A list of tools in which nothing has to be changed passes as it is, byte for byte, each time; one that
// has to be repaired is repaired, and counted, each time.
func TestM2L09CleanListsPass(t *testing.T) {
	const tool = `{ "name": "a",  "inputSchema": {"type": "object"} }`
	for _, tt := range []struct {
		list, want string
		mended     int // each time
	}{
		{`[ ` + tool + ` , ` + tool + ` ]`, `[ ` + tool + ` , ` + tool + ` ]`, 0},
		{`[]`, `[]`, 0},
		{`[` + tool + `,{"name":"b"}]`, `[{"name":"a","inputSchema":{"type": "object"}},{"name":"b","inputSchema":{"type":"object"}}]`, 1},
		{`[{"name":"b","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]`, `[{"name":"b","inputSchema":{"type":"object"}}]`, 0},
		{`[{"name":"b","inputSchema":{"type":"object"},"title":null}]`, `[{"name":"b","inputSchema":{"type":"object"}}]`, 1},
		{`[7,` + tool + `]`, `[{"name":"a","inputSchema":{"type": "object"}}]`, 1},
	} {
		met := 0
		f := frontOf(t, &moderntest.Script{}, func(o *Options) { o.Quirks = quirks.New(quirks.Options{Count: func(string, string) { met++ }}) })
		for i := range 3 {
			req := &mcp.Request{Method: spec.MethodToolsList, Era: spec.Modern, Profile: mcp.Profile{Scope: "s/0"}}
			res := mcp.NewResult([]byte(`{"tools":`+tt.list+`}`), nil)
			res.Era = spec.Legacy
			m, err := f.stamp(nil, wire.NumberID(1), req, res)
			if text := string(m.Text); err != nil || !strings.Contains(text, `"tools":`+tt.want+`,`) {
				t.Errorf("%s, time %d: %s, %v, want %s", tt.list, i+1, text, err, tt.want)
			}
			if met != tt.mended*(i+1) {
				t.Errorf("%s: %d repairs were counted after %d lists, want %d each time", tt.list, met, i+1, tt.mended)
			}
		}
	}
}
