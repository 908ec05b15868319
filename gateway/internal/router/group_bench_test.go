package router

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// benchTools returns n tools of the size that servers have.
func benchTools(prefix string, n int) string {
	var tools []string
	for i := range n {
		tools = append(tools, fmt.Sprintf(`{"name":"%sread_file_%d","title":"Read a file","description":"Reads a file of the workspace as text, and returns its lines with their numbers. Use it before you edit a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"The path of the file, relative to the root of the workspace."},"from":{"type":"integer","minimum":1},"lines":{"type":"integer"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`, prefix, i))
	}
	return strings.Join(tools, ",")
}

// benchServer is a legacy server with tools, which the gateway keeps.
func benchServer(b *testing.B, name, tools string) ServerOptions {
	results := map[string]string{
		spec.MethodInitialize: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`,
		spec.MethodToolsList:  `{"tools":[` + tools + `]}`,
		spec.MethodToolsCall:  `{"content":[{"type":"text","text":"served"}]}`,
	}
	s := httptest.NewServer(benchHandler(results))
	b.Cleanup(s.Close)
	keeps := settings.Server{Cache: public(spec.MethodToolsList)}
	return ServerOptions{Name: name, Settings: keeps, Open: func(c mcp.Changes) (mcp.Back, error) {
		return legacyback.New(legacyback.Options{Options: upstream.Options{Name: name, URL: s.URL, Changes: c, Settings: keeps, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
	}}
}

// benchGroups returns the address of a gateway with servers and groups.
func benchGroups(b *testing.B, servers ...ServerOptions) string {
	g, err := New(Options{Servers: servers})
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(g)
	b.Cleanup(func() {
		s.Close()
		if err := g.Close(context.Background()); err != nil {
			b.Errorf("Close() = %v", err)
		}
	})
	return s.Listener.Addr().String()
}

// benchPost measures a request over one connection, and returns the size of its answer.
func benchPost(b *testing.B, addr, server, method, name, params string) int {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	body := modernBody("1", method, params)
	text := "POST /mcp/" + server + " HTTP/1.1\r\nHost: " + addr + "\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n"
	for k, v := range modernHeaders(method, name) {
		text += k + ": " + v[0] + "\r\n"
	}
	r, size := bufio.NewReaderSize(conn, 64<<10), 0
	for b.Loop() {
		size = benchCall(b, conn, r, []byte(text+"\r\n"+body))
	}
	return size
}

// BenchmarkKeptList is a list of 2,000 tools that are kept: of one server, and of a group of 50.
func BenchmarkKeptList(b *testing.B) {
	const members, each = 50, 40
	var servers []ServerOptions
	all := ServerOptions{Name: "all", Group: &group.Options{ServerInfo: []byte(`{"name":"all","version":"1"}`), Patience: time.Minute, StartPatience: time.Minute}}
	var tools []string
	for i := range members {
		name := fmt.Sprintf("server%d", i)
		servers = append(servers, benchServer(b, name, benchTools("", each)))
		tools = append(tools, benchTools(name+"__", each))
		all.Group.Members = append(all.Group.Members, group.MemberOptions{Name: name, Prefix: name})
	}
	addr := benchGroups(b, append(servers, all, benchServer(b, "one", strings.Join(tools, ",")))...)
	for _, server := range []string{"one", "all"} {
		b.Run(server, func(b *testing.B) {
			b.ReportAllocs()
			size := benchPost(b, addr, server, spec.MethodToolsList, "", ``)
			b.SetBytes(int64(size))
		})
	}
}

// BenchmarkCallThrough is a small call: at a server's own endpoint, and through a group.
func BenchmarkCallThrough(b *testing.B) {
	files := benchServer(b, "files", benchTools("", 40))
	o := &group.Options{ServerInfo: []byte(`{"name":"all","version":"1"}`), Members: []group.MemberOptions{{Name: "files", Prefix: "files"}, {Name: "docs", Prefix: "docs"}}}
	bare := *o
	bare.Bare = true
	addr := benchGroups(b, files, benchServer(b, "docs", benchTools("other_", 40)), ServerOptions{Name: "all", Group: o}, ServerOptions{Name: "bare", Group: &bare})
	for server, tool := range map[string]string{"files": "read_file_1", "all": "files__read_file_1", "bare": "read_file_1"} {
		b.Run(server, func(b *testing.B) {
			b.ReportAllocs()
			benchPost(b, addr, server, spec.MethodToolsCall, tool, `"name":"`+tool+`","arguments":{"path":"/srv/notes/today.md"}`)
		})
	}
}

// benchHandler is a legacy server over HTTP that answers with results.
func benchHandler(results map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		m, err := wire.Parse(body, wire.Options{})
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case m.Kind() != wire.Request:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(wire.AppendResult(nil, m.ID, []byte(results[m.Method]), nil))
		}
	})
}
