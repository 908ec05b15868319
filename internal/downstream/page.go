package downstream

import (
	"html"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// PrefersPage reports whether a client rather gets HTML than JSON, and no event stream.
func PrefersPage(accept []string) bool {
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

// A Page is what a person reads who has opened an endpoint in a browser.
type Page struct {
	Name, URL    string
	Group, Known bool   // whether it is a group, and whether requests need credentials
	Events       string // the URL for clients on HTTP+SSE
}

// The page is text: it loads nothing, and runs nothing. Package html/template would have the linker
// keep all methods of all types, which is a quarter of the program.
const (
	pageText = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}: an MCP endpoint of mcpbridge</title>
<pre>
This is no web page but an endpoint of the Model Context Protocol (MCP): AI applications connect to it.
mcpbridge serves {kind} {name} here, to clients of every revision.

Its URL, for every client that asks for one (Streamable HTTP):

  {url}

In a client's file, as of Claude Code and Cursor (in VS Code's, servers stands for mcpServers):

  {"mcpServers": {"{name}": {"type": "http", "url": "{url}"}}}

In that of a client that only starts commands, such as Claude Desktop:

  {"mcpServers": {"{name}": {"command": "mcpbridge", "args": ["wrap", "{url}"]}}}

To look at what it has, in a terminal:

  mcpbridge ls {url}
`
	pageEvents = `
Clients that only have HTTP+SSE, the transport of 2024-11-05, connect to

  {events}
`
	pageKnown = `
Requests need credentials, as the one for this page had: clients send them with each, as a header
or a certificate.
`
)

// html returns the page.
func (p *Page) html() string {
	text, kind := pageText, "the server"
	if p.Group {
		kind = "the group of servers"
	}
	if p.Events != "" {
		text += pageEvents
	}
	if p.Known {
		text += pageKnown
	}
	values := strings.NewReplacer("{name}", html.EscapeString(p.Name), "{url}", html.EscapeString(p.URL), "{events}", html.EscapeString(p.Events), "{kind}", kind)
	return values.Replace(text + "</pre></html>\n")
}

// Write answers a person with the page.
func (p *Page) Write(w http.ResponseWriter) {
	page := p.html()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(page)))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, page) // the browser has gone if it fails; to HEAD nothing is sent
}
