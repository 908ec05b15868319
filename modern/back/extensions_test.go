package back

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// Only the server knows what a method of an extension is about: the header passes, unless
// it is none. For the specification's methods it is made anew.
func TestT31NamesOfUnknownMethods(t *testing.T) {
	for _, c := range []struct {
		name, method, rest string
		header             []string
		want               string // upstream, values joined by |
	}{
		{"as sent", "com.example/do", `,"name":"other"`, []string{"t-1"}, "t-1"},
		{"in base64", "com.example/do", "", []string{"=?base64?4pyT?="}, "=?base64?4pyT?="},
		{"raw", "com.example/do", "", []string{"été"}, "été"},
		{"none", "com.example/do", `,"name":"other"`, nil, ""},
		{"empty", "com.example/do", "", []string{""}, ""},
		{"doubled", "com.example/do", "", []string{"a", "a"}, ""},
		{"control character", "com.example/do", "", []string{"a\x01b"}, ""},
		{"no UTF-8", "com.example/do", "", []string{"\xff"}, ""},
		{"broken base64", "com.example/do", "", []string{"=?base64?%?="}, ""},
		{"a method without a name", "tools/list", "", []string{"t-1"}, ""},
		{"a method with one", "tools/call", `,"name":"x"`, []string{"=?base64?eA==?="}, "x"},
	} {
		t.Run("T-31 "+c.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.says(c.method, `{"resultType":"complete"}`)
			f, _ := before(t, p.back(Options{}))
			w := moderntest.OverHTTPWith(t, f, moderntest.Request("1", c.method, "{}", c.rest), func(h http.Header) { h[spec.HeaderName] = c.header })
			if w.Code != 200 {
				t.Fatalf("answer = %d %s", w.Code, w.Body)
			}
			if got := strings.Join(p.requests(c.method)[0].header[spec.HeaderName], "|"); got != c.want {
				t.Errorf("the server got Mcp-Name %q, want %q", got, c.want)
			}
		})
	}
}

// A code that has no meaning yet passes with all that it says; those that have one are
// dealt with.
func TestT33UnknownCodesPass(t *testing.T) {
	for code, passes := range map[int64]bool{-32023: true, -32027: true, -32042: true, -32099: true, -32020: false, -32022: false} {
		for _, status := range []int{200, 400} {
			t.Run(fmt.Sprintf("T-33 %d with %d", code, status), func(t *testing.T) {
				p := newUpPeer(t)
				p.on["events/stream"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
					upFail(w, status, m.ID, code, `{"n":1.0,"retry":null}`)
				}
				f, _ := before(t, p.back(Options{}))
				w := moderntest.OverHTTP(t, f, moderntest.Request("1", "events/stream", "{}", ""), nil)
				want := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"no %[1]d","data":{"n":1.0,"retry":null}}}`, code)
				if got := w.Body.String(); (got == want) != passes || passes && w.Code != 200 {
					t.Errorf("answer = %d %s, want it as it is: %v", w.Code, got, passes)
				}
			})
		}
	}
}

// What is hidden crosses in neither direction.
func TestT32HiddenExtensions(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/list", `{"resultType":"complete","tools":[]}`)
	p.says("server/discover", strings.Replace(discoverResult(0, "private"), `"logging":{}`,
		`"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/x":{}},"experimental":{"e/x":{},"e/y":{"n":1.0}}`, 1))
	b := p.back(Options{Options: upstream.Options{Settings: settings.Server{Extensions: settings.Extensions{Hide: []string{"com.example/x", "e/x"}}}}})
	params := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":%s,"experimental":%s,"roots":{}}}}`
	req := upModernRequest("tools/list", fmt.Sprintf(params, `{"com.example/x":{},"io.modelcontextprotocol/tasks":{}}`, `{"e/x":{}}`))
	if _, err := upBody(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(fmt.Sprintf(params, `{"io.modelcontextprotocol/tasks":{}}`, ``), `"experimental":,`, "", 1)
	if got := p.requests("tools/list")[0].params; got != want {
		t.Errorf("params %s, want %s", got, want)
	}
	req.Method = spec.MethodDiscover
	d, err := b.Describe(t.Context(), req)
	if want := `"extensions":{"io.modelcontextprotocol/tasks":{}},"experimental":{"e/y":{"n":1.0}}}`; err != nil || !strings.HasSuffix(string(d.Capabilities), want) {
		t.Errorf("Describe = %s, %v, want %s", d.Capabilities, err, want)
	}
}

// With the tasks extension hidden there is none, on either side.
func TestT32TasksOff(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/list", `{"resultType":"complete","tools":[]}`)
	p.says("server/discover", strings.Replace(discoverResult(0, "private"), `"logging":{}`, `"extensions":{"io.modelcontextprotocol/tasks":{}}`, 1))
	b := p.back(Options{Options: upstream.Options{Settings: settings.Server{Extensions: settings.Extensions{Hide: []string{spec.ExtensionTasks}}}}})
	f, s := before(t, b, func(o *modernfront.Options) { o.Settings.Tasks.Mode = settings.TasksOff })
	moderntest.OverHTTP(t, f, moderntest.Request("1", "tools/list", moderntest.DeclaresTasks, ""), nil)
	if got := p.requests("tools/list")[0].params; strings.Contains(got, spec.ExtensionTasks) {
		t.Errorf("the server got %s, want no tasks", got)
	}
	req := upModernRequest(spec.MethodDiscover, paramsOf(t, moderntest.Request("1", "x", moderntest.DeclaresTasks, "")))
	if d, err := b.Describe(t.Context(), req); err != nil || strings.Contains(string(d.Capabilities), "extensions") {
		t.Errorf("Describe = %s, %v, want no extension", d.Capabilities, err)
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if w := moderntest.OverHTTP(t, f, moderntest.Request("1", method, moderntest.DeclaresTasks, ""), nil); w.Code != 404 || !strings.Contains(w.Body.String(), `"code":-32601`) {
			t.Errorf("%s = %d %s, want 404 and -32601", method, w.Code, w.Body)
		}
		if _, err := b.Serve(t.Context(), upModernRequest(method, `{"taskId":"1"}`), &backtest.Caller{}); wireErr(t, err).Code != spec.CodeMethodNotFound {
			t.Errorf("Serve(%s) = %v, want -32601", method, err)
		}
	}
	c := moderntest.Follow(t, f, "3", `{"taskIds":["1"],"promptsListChanged":true}`)
	if got := c.Next(); !strings.Contains(got, `"notifications":{"promptsListChanged":true}`) {
		t.Errorf("event = %s, want an acknowledgment without tasks", got)
	}
	(<-s.Listened).End(nil)
}
