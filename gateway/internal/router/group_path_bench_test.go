package router

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/metrics"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// listing is an echo with a list of tools, and a text.
type listing struct {
	echo
	tools []byte
}

var shortText = []byte(`{"content":[{"type":"text","text":"served path=\"/srv/notes/today.md\" took=12ms\nserved path=\"/srv/notes/today.md\" took=12ms"}]}`)

// Serve implements [mcp.Handler].
func (l listing) Serve(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
	body := shortText
	if req.Method == spec.MethodToolsList {
		body = l.tools
	}
	res := mcp.NewResult(body, nil)
	res.Era = spec.Legacy
	return res, nil
}

// nowhere is where the response of a benchmark goes.
type nowhere struct {
	header http.Header
	code   int
}

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) WriteHeader(code int)        { w.code = code }
func (w *nowhere) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkWayThrough is the gateway's own part of a small call, with its metrics and without sockets:
// at a server's own endpoint, and through groups. The difference is what a group costs.
func BenchmarkWayThrough(b *testing.B) {
	g, err := New(Options{Metrics: metrics.New("test"), Servers: []ServerOptions{
		{Name: "files", Open: listingOf(benchTools("", 40))}, {Name: "docs", Open: listingOf(benchTools("docs_", 40))},
		{Name: "all", Group: groupOf("files", "docs")}, {Name: "bare", Group: bareGroupOf("files", "docs")},
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Close(context.Background()) })
	for _, way := range []struct{ server, tool string }{{"files", "read_file_1"}, {"all", "files__read_file_1"}, {"bare", "read_file_1"}} {
		b.Run(way.server, func(b *testing.B) {
			body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + way.tool + `","arguments":{"path":"/srv/notes/today.md","lines":100},` + envelope + `}}`)
			r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/mcp/"+way.server, body)
			if err != nil {
				b.Fatal(err)
			}
			r.Header, r.RemoteAddr = modernHeaders(spec.MethodToolsCall, way.tool), "127.0.0.1:1"
			b.ReportAllocs()
			for b.Loop() {
				_, _ = body.Seek(0, io.SeekStart)
				w := nowhere{header: make(http.Header)}
				if g.ServeHTTP(&w, r); w.code > http.StatusOK {
					b.Fatal(w.code)
				}
			}
		})
	}
}

func listingOf(tools string) func(mcp.Changes) (mcp.Back, error) {
	l := listing{tools: []byte(`{"tools":[` + tools + `]}`)}
	return func(mcp.Changes) (mcp.Back, error) { return l, nil }
}

func bareGroupOf(members ...string) *group.Options {
	o := groupOf(members...)
	o.Bare = true
	return o
}
