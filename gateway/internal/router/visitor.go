package router

import (
	"bytes"
	"html/template"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// isVisit reports whether a request is that of a person who has opened an endpoint in a browser:
// it wants a page rather than messages, and has nothing that only clients send.
func isVisit(r *http.Request, at forward.Endpoint) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || at == forward.Messages || transport.IsUpgrade(r) {
		return false
	}
	for _, name := range []string{spec.HeaderSession, spec.HeaderProtocolVersion, spec.HeaderLastEventID} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return prefersPage(r.Header.Values("Accept"))
}

// prefersPage reports whether a client rather gets HTML than JSON, and no event stream.
func prefersPage(accept []string) bool {
	weights := make(map[string]float64)
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		typ, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		weight, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			weight = 1
		}
		weights[typ] = weight
	}
	_, events := weights[spec.TypeStream]
	return !events && weights["text/html"] > weights[spec.TypeJSON]
}

// A visitPage is what such a person gets to read.
type visitPage struct {
	Name, URL    string
	Group, Known bool   // whether it is a group, and whether requests need credentials
	Events       string // the URL for clients on HTTP+SSE
}

// newVisitPage returns the page about the server of a request.
func newVisitPage(s *server, r *http.Request, at forward.Endpoint) visitPage {
	base := "http://" + r.Host + prefixOf(r)
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		base = "https://" + r.Host + prefixOf(r)
	}
	p := visitPage{Name: s.name, Group: s.group != nil, Known: s.guard.Auth != auth.None, Events: base + forward.Events.Path(s.name)}
	switch {
	case s.guard.Endpoint != nil:
		p.URL, p.Events = s.guard.Endpoint.Resource, ""
	case at == forward.Streamable:
		p.URL = base + strings.TrimSuffix(r.URL.Path, "/")
	default:
		p.URL = base + forward.Streamable.Path(s.name)
	}
	return p
}

// visitText is the page. It is text: it loads nothing, and runs nothing.
var visitText = template.Must(template.New("visit").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Name}}: an MCP endpoint of mcpbridge</title>
<pre>
This is no web page but an endpoint of the Model Context Protocol (MCP): AI applications connect to it.
mcpbridge serves {{if .Group}}the group of servers{{else}}the server{{end}} {{.Name}} here, to clients of every revision.

Its URL, for every client that asks for one (Streamable HTTP):

  {{.URL}}

In a client's file, as of Claude Code and Cursor (in VS Code's, servers stands for mcpServers):

  {"mcpServers": {"{{.Name}}": {"type": "http", "url": "{{.URL}}"}}}

In that of a client that only starts commands, such as Claude Desktop:

  {"mcpServers": {"{{.Name}}": {"command": "mcpbridge", "args": ["wrap", "{{.URL}}"]}}}

To look at what it has, in a terminal:

  mcpbridge ls {{.URL}}
{{with .Events}}
Clients that only have HTTP+SSE, the transport of 2024-11-05, connect to

  {{.}}
{{end}}{{if .Known}}
Requests need credentials, as the one for this page had: clients send them with each, as a header
or a certificate.
{{end}}</pre></html>
`))

// serveVisit answers a person who has opened the endpoint of a server in a browser.
func serveVisit(w http.ResponseWriter, p visitPage) {
	var page bytes.Buffer
	if err := visitText.Execute(&page, p); err != nil {
		panic(err) // nothing in it can fail
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(page.Len()))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(page.Bytes()) // the browser has gone if it fails; to HEAD nothing is sent
}
