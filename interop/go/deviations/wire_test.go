package deviations

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	revisionHeader = "Mcp-Protocol-Version"
	sessionHeader  = "Mcp-Session-Id"
)

// A place is where deviations are played: an endpoint, and what there is to call and to read.
type place struct {
	url       string
	tool      string
	arguments string
	uri       string
}

// An outcome is what a request got.
type outcome struct {
	status int // of HTTP
	code   int // of the JSON-RPC error; 0 without one
	taken  bool
	form   string // the Content-Type
	opened bool   // it was in a session of its own
	text   string
}

func (o outcome) String() string {
	if o.taken {
		return "taken"
	}
	return fmt.Sprintf("%d/%d", o.status, o.code)
}

const (
	// patience is how long an answer may take.
	patience = time.Minute
	// briefly is how long an answer of a server itself is waited for, and a program's end: some never
	// come, and nothing fails for that.
	briefly = 10 * time.Second
)

// accepts are the values of Accept.
var accepts = map[string]string{"both": "application/json, text/event-stream", "json": "application/json", "stream": "text/event-stream", "any": "*/*"}

// play sends what a client sends before d, and d, and ends the session that it has opened.
func (p place) play(ctx context.Context, c *http.Client, d deviation) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	own, id := d[asks], ""
	if d.opens() {
		var err error
		if own, id, err = p.open(ctx, c, d); err != nil {
			return outcome{}, fmt.Errorf("opening a session: %w", err)
		}
	}
	if d[session] == "own" && id != "" {
		defer p.end(ctx, c, own, id)
	}
	if d[session] == "over" && id != "" {
		p.end(ctx, c, own, id)
	}
	o, err := p.send(ctx, c, d, d.headers(p, own, id))
	o.opened = id != ""
	if err != nil {
		return o, fmt.Errorf("%s: %w", d, err)
	}
	return o, nil
}

// open opens a session as a client should, and returns its revision and its id, which a server
// without sessions does not give.
func (p place) open(ctx context.Context, c *http.Client, d deviation) (revision, id string, err error) {
	first := deviation{"initialize", d[asks], "none", "none", "none", "both", "fine"}
	req, err := p.request(ctx, first, first.headers(p, "", ""))
	if err != nil {
		return "", "", err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	o, err := read(res, first)
	if err != nil || !o.taken {
		return d[asks], "", err
	}
	var answer struct {
		Result struct{ ProtocolVersion string }
	}
	if err := json.Unmarshal([]byte(o.text), &answer); err != nil {
		return "", "", err
	}
	revision, id = answer.Result.ProtocolVersion, res.Header.Get(sessionHeader)
	if d[verb] != "initialized" && d[verb] != "initialize" {
		next := deviation{"initialized", d[asks], "own", "none", "own", "both", "fine"}
		_, err = p.send(ctx, c, next, next.headers(p, revision, id))
	}
	return revision, id, err
}

// end ends a session, if the server lets a client do that.
func (p place) end(ctx context.Context, c *http.Client, revision, id string) {
	d := deviation{"DELETE", "", "own", "none", "own", "none", "fine"}
	_, _ = p.send(ctx, c, d, d.headers(p, revision, id)) // there is no more to do with it
}

// headers returns the headers of d in a session.
func (d deviation) headers(p place, revision, id string) http.Header {
	h := make(http.Header)
	switch d[header] {
	case "none":
	case "own":
		h.Set(revisionHeader, revision)
	default:
		h.Set(revisionHeader, d[header])
	}
	switch {
	case d[session] == "unknown":
		h.Set(sessionHeader, "0123456789abcdef0123456789abcdef")
	case d[session] != "none" && id != "":
		h.Set(sessionHeader, id)
	}
	if a := accepts[d[accept]]; a != "" {
		h.Set("Accept", a)
	}
	if d.method() == "" && d[verb] != "response" && d[verb] != "batch" {
		return h
	}
	h.Set("Content-Type", map[string]string{"charset": "application/json; charset=utf-8", "text": "text/plain"}[d[body]])
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	if method := d.method(); method != "" && (d[header] == "2026-07-28" || d[envelope] != "none") {
		h.Set("Mcp-Method", method) // these are always as they should be
		if target := map[string]string{"tools/call": p.tool, "resources/read": p.uri}[method]; target != "" {
			h.Set("Mcp-Name", target)
		}
	}
	return h
}

// method returns the method of the message; it is empty without one.
func (d deviation) method() string {
	switch d[verb] {
	case "GET", "DELETE", "response", "batch":
		return ""
	case "initialized":
		return "notifications/initialized"
	case "notification":
		return "notifications/roots/list_changed"
	}
	return d[verb]
}

// isRequest reports whether d is a message with an id that is answered.
func (d deviation) isRequest() bool {
	m := d.method()
	return d[verb] == "batch" || m != "" && !strings.HasPrefix(m, "notifications/")
}

// send sends d and reads what it gets.
func (p place) send(ctx context.Context, c *http.Client, d deviation, h http.Header) (outcome, error) {
	req, err := p.request(ctx, d, h)
	if err != nil {
		return outcome{}, err
	}
	res, err := c.Do(req)
	if err != nil {
		return outcome{}, err
	}
	defer res.Body.Close()
	return read(res, d)
}

func (p place) request(ctx context.Context, d deviation, h http.Header) (*http.Request, error) {
	method := http.MethodPost
	if d[verb] == "GET" || d[verb] == "DELETE" {
		method = d[verb]
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url, strings.NewReader(p.message(d)))
	if err == nil {
		req.Header = h
	}
	return req, err
}

// message returns the body of d.
func (p place) message(d deviation) string {
	id := "7"
	if d[body] == "text-id" {
		id = `"seven"`
	}
	var m string
	switch {
	case d[verb] == "GET" || d[verb] == "DELETE":
		return ""
	case d[verb] == "response":
		m = `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`
	case d[verb] == "batch":
		list, call := d, d
		list[verb], call[verb] = "tools/list", "tools/call"
		m = "[" + p.single(list, id) + "," + p.single(call, strings.NewReplacer("7", "8", "seven", "eight").Replace(id)) + "]"
	case d.isRequest():
		m = p.single(d, id)
	default:
		m = p.single(d, "")
	}
	if d[body] == "spaces" {
		m = " \r\n\t" + strings.NewReplacer(`":`, `" : `, `,"`, " ,\n\"").Replace(m) + "\n \n"
	}
	return m
}

// single returns a request or notification.
func (p place) single(d deviation, id string) string {
	m := `{"jsonrpc":"2.0",`
	if id != "" {
		m += `"id":` + id + ","
	}
	m += `"method":"` + d.method() + `"`
	switch d[body] {
	case "no-params":
		return m + "}"
	case "null-params":
		return m + `,"params":null}`
	}
	params := map[string]string{
		"initialize":     `"protocolVersion":"` + d[asks] + `","capabilities":{},"clientInfo":{"name":"deviant","version":"1"}`,
		"tools/call":     `"name":"` + p.tool + `","arguments":` + p.arguments,
		"resources/read": `"uri":"` + p.uri + `"`,
	}[d.method()]
	if meta := d.meta(); meta != "" {
		params = strings.Trim(params+`,"_meta":`+meta, ",")
	}
	return m + `,"params":{` + params + `}}`
}

// meta returns the _meta of d.
func (d deviation) meta() string {
	revision, capabilities := "2026-07-28", `"io.modelcontextprotocol/clientCapabilities":{},`
	switch d[envelope] {
	case "none":
		return ""
	case "partial":
		capabilities = ""
	case "legacy":
		revision = "2025-11-25"
	}
	return `{"io.modelcontextprotocol/protocolVersion":"` + revision + `",` + capabilities + `"io.modelcontextprotocol/clientInfo":{"name":"deviant","version":"1"}}`
}

// read reads the response to d.
func read(res *http.Response, d deviation) (outcome, error) {
	o := outcome{status: res.StatusCode, form: res.Header.Get("Content-Type")}
	good, isStream := res.StatusCode/100 == 2, strings.HasPrefix(o.form, "text/event-stream")
	if d[verb] == "GET" && good {
		o.taken = isStream
		return o, nil // it stays open
	}
	var err error
	if isStream {
		o.text, err = ofStream(res.Body, d[verb] == "batch")
	} else {
		var text []byte
		text, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
		o.text = string(text)
	}
	if err != nil {
		return o, err
	}
	results := 0
	results, o.code = answers(o.text)
	o.taken = good && (!d.isRequest() || results > 0 && o.code == 0)
	return o, nil
}

// ofStream returns the response on an event stream, or all of a batch as an array.
func ofStream(r io.Reader, isBatch bool) (string, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var all []string
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data:")
		results, code := answers(text)
		switch {
		case !ok || results == 0 && code == 0:
		case !isBatch:
			return text, nil
		default:
			all = append(all, strings.Trim(text, " []"))
		}
	}
	return "[" + strings.Join(all, ",") + "]", lines.Err()
}

// answers returns how many results there are in a message, or a batch, and the code of the first
// error.
func answers(text string) (results, code int) {
	type answer struct {
		Result json.RawMessage
		Error  *struct{ Code int }
	}
	var all []answer
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		all = make([]answer, 1)
		if json.Unmarshal([]byte(text), &all[0]) != nil {
			return 0, 0
		}
	}
	for _, a := range slices.Backward(all) {
		if a.Error != nil {
			code = a.Error.Code
		} else if len(bytes.TrimSpace(a.Result)) > 0 {
			results++
		}
	}
	return results, code
}
