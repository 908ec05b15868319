package page

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A tape writes down what passes over HTTP, as it passes.
type tape struct {
	mu    sync.Mutex
	sent  []string
	reads []*reading
}

// A reading is the body of a response, as far as it was read.
type reading struct {
	io.ReadCloser
	t      *tape
	stream bool
	text   bytes.Buffer // guarded by t.mu
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	r.text.Write(p[:n])
	return n, err
}

// RoundTrip implements [http.RoundTripper].
func (t *tape) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		t.mu.Lock()
		t.sent = append(t.sent, strings.TrimSpace(string(body)))
		t.mu.Unlock()
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &reading{ReadCloser: res.Body, t: t, stream: strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")}
	t.reads = append(t.reads, r)
	res.Body = r
	return res, nil
}

// all returns the messages that were sent, and those that came back, with one of the words.
func (t *tape) all(words ...string) (sent, got []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	has := func(text string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	for _, text := range t.sent {
		if has(text) {
			sent = append(sent, text)
		}
	}
	for _, r := range t.reads {
		all := []string{r.text.String()}
		if r.stream {
			all = strings.Split(r.text.String(), "\n")
		}
		for _, text := range all {
			text = strings.TrimSpace(strings.TrimPrefix(text, "data:"))
			if strings.HasPrefix(text, "{") && has(text) {
				got = append(got, text)
			}
		}
	}
	return sent, got
}

// taped returns lines of configuration for two servers, and the tapes of what mcpbridge and they
// say to each other.
func taped(t testing.TB) (lines string, tapes map[string]*tape) {
	tapes = make(map[string]*tape)
	for name, program := range map[string]string{"legacy": programs.Server, "modern": modern} {
		at := rig.FreeAddr(t)
		p, err := process.Start(name+"-go", nil, program, "-http", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		if err := p.Ready(t.Context(), "http://"+at+"/", 0); err != nil {
			t.Fatal(err)
		}
		to := &url.URL{Scheme: "http", Host: at}
		tapes[name] = &tape{}
		proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: tapes[name], FlushInterval: -1})
		t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
		lines += fmt.Sprintf("  taped-%s: {url: \"%s/mcp\"}\n", name, proxy.URL)
	}
	return lines, tapes
}

// A seen call is one as /api/calls has it.
type seenCall struct {
	ID, Name, Client, Former, Next, Error string
	Messages                              []struct{ From, To, Text string }
	Heads                                 []struct {
		From, To string
		Status   int
		Fields   []struct{ Name, Value string }
	}
}

// seen returns the requests that are one call of a client.
func (w *world) seen(t *testing.T, client, name string) (all []seenCall) {
	t.Helper()
	var list struct{ Calls []seenCall }
	w.get(t, "/api/calls", &list)
	for _, c := range slices.Backward(list.Calls) {
		if strings.HasPrefix(c.Client, client) && c.Name == name {
			var whole seenCall
			w.get(t, "/api/calls/"+c.ID, &whole)
			all = append(all, whole)
		}
	}
	return all
}

// passed returns the messages of calls from one to another.
func passed(calls []seenCall, from, to string) (all []string) {
	for _, c := range calls {
		for _, m := range c.Messages {
			if m.From == from && m.To == to {
				all = append(all, strings.TrimSpace(m.Text))
			}
		}
	}
	return all
}

// A call with a question, seen from both sides: what the page shows is, byte for byte, what the
// wire had, with clients and servers of both eras. Two clicks lead to it.
func TestBothSidesAreTheWires(t *testing.T) {
	lines, tapes := taped(t)
	w := newWorld(t, lines)
	b := newBrowser(t)
	b.login(w)
	for _, server := range []string{"legacy", "modern"} {
		for _, revision := range []string{"2026-07-28", "2025-11-25"} {
			t.Run(revision+" to "+server, func(t *testing.T) {
				b := b.in(t)
				b.view("live") // the first click
				nonce, client := "n-"+revision+"-"+server, "c-"+revision+"-"+server
				mine := &tape{}
				cs := w.connectBy(t, mine, "taped-"+server, revision, client, nonce)
				call(t, cs, "ask", map[string]any{"nonce": nonce})
				b.filter(client)
				b.sees("tools/call ask")
				sidesOfTheWire(t, w, mine, tapes[server], client, nonce)
				if n := eval[int](b, `[...document.querySelectorAll('.lines > li')].filter((n) => n.innerText.includes('tools/call ask')).length`); n != 1 {
					t.Errorf("the call has %d lines, want one", n)
				}
				b.sees("ok")
				b.do(chromedp.Click(`.lines li:has(details) a[href^="#call/"]`), chromedp.WaitVisible(".sides")) // the second
				b.sees("what the client sent", "what the server got", "what the server sent", "what the client got", "On the way between the sides", "HTTP status 200")
				marksOf(t, b, revision, server)
				b.do(chromedp.Click("#as-sent"))
				shown := eval[[]string](b, `[...document.querySelectorAll('.sides .message > pre')].map((n) => n.textContent.trim())`)
				calls := w.seen(t, client, "ask")
				for _, side := range [][2]string{{"client", "mcpbridge"}, {"mcpbridge", "client"}, {"mcpbridge", "server"}, {"server", "mcpbridge"}} {
					for _, text := range passed(calls, side[0], side[1]) {
						if !slices.Contains(shown, text) {
							t.Errorf("the page does not show %s from %s to %s; it shows %q", text, side[0], side[1], shown)
						}
					}
				}
				b.picture("sides-" + revision + "-" + server)
			})
		}
	}
}

// marksOf looks at what is marked: what only one of the eras has was added or taken away, and between
// sides of one era that are passed on the ids alone are others.
func marksOf(t *testing.T, b *browser, revision, server string) {
	t.Helper()
	marked := func(side, tag string) string {
		return eval[string](b, fmt.Sprintf(`[...document.querySelectorAll('.message.%s pre %s')].map((n) => n.textContent.trim()).join(' ')`, side, tag))
	}
	var want map[string]string // part of a text by side and mark; empty for none at all
	switch revision + " " + server {
	case "2026-07-28 legacy":
		want = map[string]string{"left del": "io.modelcontextprotocol/protocolVersion", "left ins": `"resultType": "complete"`, "right del": `"id": 1`, "right ins": `"id": 1`}
	case "2025-11-25 legacy":
		want = map[string]string{"left del": "", "left ins": "", "right del": "", "right ins": "", "right mark": `"id":`}
	case "2026-07-28 modern":
		want = map[string]string{"left del": "", "left ins": "", "right ins": "", "right del": "", "right mark": `"id":`}
	case "2025-11-25 modern":
		want = map[string]string{"right ins": "io.modelcontextprotocol/protocolVersion", "right del": `"resultType": "complete"`}
	}
	for of, part := range want {
		side, tag, _ := strings.Cut(of, " ")
		if got := marked(side, tag); !strings.Contains(got, part) || part == "" && got != "" {
			t.Errorf("on the %s <%s> marks %q, want %q", side, tag, got, part)
		}
	}
	if got := marked("left", "mark") + marked("right", "mark"); strings.Contains(got, "nonce") {
		t.Errorf("what is the same is marked: %s", got)
	}
}

// What is laid out is what was written: no number, name or escape is another one, and what differs
// is found wherever it is.
func TestLaidOut(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	const text = `{"a":1.0,"n":9007199254740993,"a\u0062":"\u00e9\"}","e":{},"l":[ ],"d":[1,{"x":null}],"a":2e5}`
	want := "{\n  \"a\": 1.0,\n  \"n\": 9007199254740993,\n  \"a\\u0062\": \"\\u00e9\\\"}\",\n  \"e\": {},\n  \"l\": [],\n  \"d\": [\n    1,\n    {\n      \"x\": null\n    }\n  ],\n  \"a\": 2e5\n}"
	got := eval[string](b, fmt.Sprintf(`import('/assets/json.js').then((j) => j.lines(j.parse(%q)).map((l) => l.text).join('\n'))`, text))
	if got != want {
		t.Errorf("laid out it is\n%s\nwant\n%s", got, want)
	}
	for _, tt := range []struct{ a, b, want string }{
		{`{"x":1,"y":2}`, `{"y":2,"x":1}`, "same same same"},
		{`{"x":1,"y":2}`, `{"x":2}`, "same changed none"},
		{`{"x":"\u0041"}`, `{"x":"A"}`, "same same"},
		{`{"x":1.0}`, `{"x":1}`, "same changed"},
		{`{"x":{"z":1}}`, `{"x":[1]}`, "same changed none"},
		{`[1,2]`, `[1]`, "same same none"},
	} {
		got := eval[string](b, fmt.Sprintf(`import('/assets/json.js').then((j) => { const [a, b, marks, out] = [j.parse(%q), j.parse(%q), new Map(), []]; j.compare(a, b, marks);
			const walk = (n) => { out.push(marks.get(n) ?? 'none'); n.parts?.forEach((p) => walk(p.value)); }; walk(a); return out.join(' '); })`, tt.a, tt.b))
		if got != tt.want {
			t.Errorf("%s beside %s = %s, want %s", tt.a, tt.b, got, tt.want)
		}
	}
	for _, text := range []string{"", "{", "[1,]", "x", strings.Repeat("[", 9000) + strings.Repeat("]", 9000)} {
		if is := eval[bool](b, fmt.Sprintf(`import('/assets/json.js').then((j) => j.parse(%q) === null)`, text)); !is {
			t.Errorf("%.20s is taken for JSON that can be laid out", text)
		}
	}
}

// sidesOfTheWire compares what is told of a call with what has passed.
func sidesOfTheWire(t *testing.T, w *world, mine, theirs *tape, client, nonce string) {
	t.Helper()
	var calls []seenCall
	rig.Until(t, patience, "the call", func() string {
		if calls = w.seen(t, client, "ask"); len(calls) == 0 || len(passed(calls, "server", "mcpbridge")) < 2 {
			return fmt.Sprintf("%+v", calls)
		}
		return ""
	})
	clientSent, clientGot := mine.all(nonce)
	serverGot, serverSent := theirs.all(nonce)
	for _, tt := range []struct {
		from, to string
		want     []string
	}{{"client", "mcpbridge", clientSent}, {"mcpbridge", "client", clientGot}, {"mcpbridge", "server", serverGot}, {"server", "mcpbridge", serverSent}} {
		if got := passed(calls, tt.from, tt.to); !slices.Equal(got, tt.want) || len(got) != 2 {
			t.Errorf("from %s to %s are shown\n%s\nand the wire had\n%s", tt.from, tt.to, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
	for _, c := range calls {
		for _, h := range c.Heads {
			for _, f := range h.Fields {
				if strings.EqualFold(f.Name, "Mcp-Session-Id") && f.Value != "[hidden]" {
					t.Errorf("a session id is shown: %q", f.Value)
				}
			}
		}
	}
}

// connectBy is connect of a client whose messages are taped, and that answers with a nonce.
func (w *world) connectBy(t *testing.T, by *tape, server, revision, name, nonce string) *mcp.ClientSession {
	t.Helper()
	o := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"nonce": nonce}}, nil
	}}
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, o)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.base + "/mcp/" + server, HTTPClient: &http.Client{Transport: by}}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// The words of a tool that fails are in its line, and those of an error of the protocol.
func TestErrorsOwnWords(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	b.view("live")
	cs := w.connect(t, "modern", "2025-11-25", "fails", nil)
	call(t, cs, "test_error_handling", nil)
	w.send(t, "modern", "tools/call", `"name":"no such tool",`, "knows-no-tool")
	b.sees("this tool always fails", "tool error", `unknown tool`)
	b.picture("errors")
}
