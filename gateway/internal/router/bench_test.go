package router

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// BenchmarkCall is one translated tools/call over real sockets, with all that
// takes part in it: the client and the upstream count too, in time and in
// allocations. internal/dev/bench tells the gateway's share.
func BenchmarkCall(b *testing.B) {
	for _, n := range []int{100, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("result=%d", n), func(b *testing.B) {
			addr := benchGateway(b, benchUpstream(b, n), nil)
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			r := bufio.NewReaderSize(conn, 64<<10)
			call := benchRequest(b, addr, "")
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if got := benchCall(b, conn, r, call); got < n {
					b.Fatalf("the answer has %d bytes, want at least %d", got, n)
				}
			}
		})
	}
}

// BenchmarkCallBy is that of a small call, by how its client proves who it is. Both send the
// same bytes.
func BenchmarkCallBy(b *testing.B) {
	i := issuertest.New(b)
	token := i.Token(resource, nil)
	j, err := auth.NewJWT(auth.JWTOptions{Issuer: i.URL, Client: fetch.New(fetch.Options{Near: []string{i.URL}})})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(j.Close)
	tokens, err := auth.NewTokens([]auth.StaticToken{{Name: "ada", Token: token}})
	if err != nil {
		b.Fatal(err)
	}
	for _, who := range []struct {
		name string
		auth auth.Authenticator
	}{{"none", auth.None}, {"tokens", tokens}, {"jwt", j}} {
		b.Run(who.name, func(b *testing.B) {
			addr := benchGateway(b, benchUpstream(b, 100), who.auth)
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			r := bufio.NewReaderSize(conn, 64<<10)
			call := benchRequest(b, addr, token)
			b.ReportAllocs()
			for b.Loop() {
				benchCall(b, conn, r, call)
			}
		})
	}
}

// benchUpstream is a legacy server whose only answer to a call has so many bytes
// of text.
func benchUpstream(b *testing.B, size int) string {
	const line = `served path=\"/srv/notes/today.md\" took=12ms\n`
	text := strings.Repeat(line, size/len(line)+1)
	results := map[string]string{
		spec.MethodInitialize: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`,
		spec.MethodToolsCall:  `{"content":[{"type":"text","text":"` + text + `"}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is cut short does not parse
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
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// benchGateway returns the address of a gateway in front of server.
func benchGateway(b *testing.B, server string, a auth.Authenticator) string {
	g, err := New(Options{Auth: a, Servers: []ServerOptions{{Name: "peer", PublicURL: resource, Open: func(c mcp.Changes) (mcp.Back, error) {
		return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: server, Changes: c, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
	}}}})
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

func benchRequest(b *testing.B, addr, token string) []byte {
	body := modernBody("1", spec.MethodToolsCall, `"name":"read","arguments":{"path":"/srv/notes/today.md"}`)
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/mcp/peer", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header = modernHeaders(spec.MethodToolsCall, "read")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	var buf bytes.Buffer
	if err := req.Write(&buf); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

// benchCall returns the size of the answer.
func benchCall(b *testing.B, conn net.Conn, r *bufio.Reader, call []byte) int {
	if _, err := conn.Write(call); err != nil {
		b.Fatal(err)
	}
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("%s, %v", res.Status, err)
	}
	return int(n)
}
