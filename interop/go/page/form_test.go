package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// tools are those of a server that answers each call with its arguments.
const tools = `[
{"name":"flat","description":"Sends a report.","inputSchema":{"type":"object","required":["title","copies","draft","format"],"properties":{
	"title":{"type":"string","title":"Title","description":"What the report is called."},
	"note":{"type":"string"},
	"copies":{"type":"integer","minimum":1,"maximum":9,"description":"From 1 to 9."},
	"scale":{"type":"number","default":1.5},
	"draft":{"type":"boolean"},
	"urgent":{"type":"boolean","description":"Asks for it at once."},
	"format":{"type":"string","enum":["pdf","html"],"default":"html"},
	"level":{"oneOf":[{"const":1,"title":"Low"},{"const":2,"title":"High"}]},
	"reader":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}},
{"name":"none","inputSchema":{"type":"object"}},
{"name":"nested","inputSchema":{"type":"object","required":["where"],"properties":{"where":{"type":"object","properties":{"x":{"type":"number"}}}}}},
{"name":"list","inputSchema":{"type":"object","properties":{"of":{"type":"array","items":{"type":"string"}}}}},
{"name":"either","inputSchema":{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]}]}}]`

// startTools starts the server, and returns its line of configuration.
func startTools(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		c := evilCall{ID: m.ID}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "initialize":
			respond(w, c, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tools","version":"1"}}`)
		case m.Method == "tools/list":
			respond(w, c, `"result":{"tools":`+tools+`}`)
		case m.Method == "tools/call":
			respond(w, c, `"result":{"content":[],"structuredContent":{"got":`+quoted(string(m.Params.Arguments))+`}}`)
		default:
			respond(w, c, `"error":{"code":-32601,"message":"no such method"}`)
		}
	}))
	t.Cleanup(s.Close)
	return fmt.Sprintf("  tools: {url: %q}\n", s.URL)
}

// openForm opens the form at a tool.
func (b *browser) openForm(tool string) {
	b.t.Helper()
	b.view("try")
	b.choose("#try-server", "tools")
	rig.Until(b.t, patience, "the tools", func() string {
		if names := eval[[]string](b, `[...document.querySelectorAll('#try-tool option')].map((n) => n.value)`); len(names) != 5 || names[0] != "flat" {
			return fmt.Sprint(names)
		}
		return ""
	})
	b.choose("#try-tool", tool)
}

// set changes an input by its label's text.
func (b *browser) set(label, value string) {
	b.t.Helper()
	if !eval[bool](b, fmt.Sprintf(`(() => {
		const label = [...document.querySelectorAll('.fields label')].find((n) => n.innerText.split(',')[0] === %q);
		if (!label) return false;
		const at = document.getElementById(label.htmlFor);
		at.value = at.tagName === 'SELECT' ? ([...at.options].find((o) => o.text === %[2]q)?.value ?? 'no such option') : %[2]q;
		return at.value !== '' || %[2]q === '' || %[2]q === 'not set'; })()`, label, value)) {
		b.t.Fatalf("%s can't be set to %q", label, value)
	}
}

// call submits the form, and returns the arguments that the server has got.
func (b *browser) call() string {
	b.t.Helper()
	eval[bool](b, `document.querySelector('#try-result').textContent = ''; true`)
	b.do(chromedp.Click(`.try button[type="submit"]`))
	var got string
	rig.Until(b.t, patience, "the result", func() string {
		text := b.text("#try-result")
		var result struct{ StructuredContent struct{ Got string } }
		if err := json.Unmarshal([]byte(text), &result); err != nil {
			return "it is " + text + b.text("#try-problem")
		}
		got = result.StructuredContent.Got
		return ""
	})
	return got
}

// raw switches between inputs and JSON.
func (b *browser) raw() { b.do(chromedp.Click("#try-raw")) }

// A flat schema has an input for each argument, with its label, description and default, and
// what is sent has their types. Arguments as JSON are the same ones, and go back into inputs
// if they fit. Other schemas have JSON alone.
func TestForm(t *testing.T) {
	w := newWorld(t, startTools(t))
	b := newBrowser(t)
	b.login(w)
	b.openForm("flat")

	t.Run("inputs", func(t *testing.T) {
		b := b.in(t)
		b.sees("Sends a report.", "Title (title), required", "What the report is called.", "note", "copies, required", "From 1 to 9.", "format, required", "Write the arguments as JSON")
		b.set("Title (title)", "Über \"alles\"")
		b.set("copies", "3")
		b.set("draft", "false")
		b.same(b.call(), `{"title":"Über \"alles\"","copies":3,"scale":1.5,"draft":false,"format":"html"}`)
		b.set("note", "n")
		b.set("scale", "-0.25")
		b.set("urgent", "true")
		b.set("level", "High")
		b.set("reader", "ada")
		b.set("format", "pdf")
		b.same(b.call(), `{"title":"Über \"alles\"","note":"n","copies":3,"scale":-0.25,"draft":false,"urgent":true,"format":"pdf","level":2,"reader":"ada"}`)
		b.set("urgent", "not set")
		b.set("level", "not set")
		b.set("note", "")
		b.set("scale", "")
		b.set("reader", "")
		b.same(b.call(), `{"title":"Über \"alles\"","copies":3,"draft":false,"format":"pdf"}`)
	})
	t.Run("JSON and back", func(t *testing.T) {
		b := b.in(t)
		b.raw()
		b.same(eval[string](b, `document.querySelector('#try-arguments').value`), `{"title":"Über \"alles\"","copies":3,"draft":false,"format":"pdf"}`)
		b.do(chromedp.SetValue("#try-arguments", `{"title":"","copies":1,"draft":true,"format":"html","level":1,"more":[1]}`))
		b.same(b.call(), `{"title":"","copies":1,"draft":true,"format":"html","level":1,"more":[1]}`)
		for text, want := range map[string]string{
			`{"more":[1]}`: "there is no argument more", `{"copies":1.5}`: "copies has no such value", `{"level":3}`: "level has no such value",
			`{"title":"a\nb"}`: "title has no such value", `{`: "they are not JSON", `[]`: "they are not an object",
		} {
			eval[bool](b, fmt.Sprintf(`document.querySelector('#try-arguments').value = %q; true`, text))
			b.raw()
			b.sees("The inputs can't show these arguments: " + want)
			if visible := eval[bool](b, `document.querySelector('#try-argument-0').checkVisibility()`); visible {
				t.Errorf("%s: there are inputs", text)
			}
		}
		eval[bool](b, `document.querySelector('#try-arguments').value = '{"title":"t","copies":2,"draft":true,"format":"html","level":1}'; true`)
		b.raw()
		b.do(chromedp.WaitVisible("#try-argument-0"))
		b.same(b.call(), `{"title":"t","copies":2,"draft":true,"format":"html","level":1}`)
	})
	t.Run("refused", func(t *testing.T) { // by the browser, without a request
		b := b.in(t)
		for _, copies := range []string{"", "0", "10", "1.5"} {
			b.set("copies", copies)
			b.do(chromedp.Click(`.try button[type="submit"]`))
			if got := eval[string](b, `document.querySelector('.fields :invalid')?.id ?? ''`); got != "try-argument-2" {
				t.Errorf("with %q copies the invalid input is %q", copies, got)
			}
		}
	})
	t.Run("keyboard", func(t *testing.T) {
		b := b.in(t)
		b.choose("#try-tool", "flat")
		b.do(chromedp.Focus("#try-tool"))
		var stops []string
		for range 11 {
			b.do(chromedp.KeyEvent("\t"))
			stops = append(stops, eval[string](b, `document.activeElement.id || document.activeElement.type`))
		}
		want := "try-argument-0 try-argument-1 try-argument-2 try-argument-3 try-argument-4 try-argument-5 try-argument-6 try-argument-7 try-argument-8 try-raw submit"
		if got := strings.Join(stops, " "); got != want {
			t.Errorf("the stops are %s, want %s", got, want)
		}
		b.do(chromedp.Focus("#try-raw"), chromedp.KeyEvent(" "), chromedp.WaitVisible("#try-arguments"))
		b.do(chromedp.KeyEvent(" "), chromedp.WaitVisible("#try-argument-0"), chromedp.Focus("#try-argument-0"))
		if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: "typed"}); err != nil {
			t.Fatal(err)
		}
		b.set("copies", "2")
		eval[bool](b, `document.querySelector('#try-result').textContent = ''; true`)
		b.do(chromedp.KeyEvent("\r"))
		b.sees(`typed`)
	})
	t.Run("others", func(t *testing.T) {
		b := b.in(t)
		b.choose("#try-tool", "none")
		b.sees("This tool takes no arguments.")
		b.same(b.call(), `{}`)
		for _, tool := range []string{"nested", "list", "either"} {
			b.choose("#try-tool", tool)
			b.do(chromedp.WaitVisible("#try-arguments"))
			b.sees("This tool has arguments for which there are no inputs.")
			if !eval[bool](b, `document.querySelector('#try-raw').disabled`) {
				t.Errorf("%s: the switch does something", tool)
			}
		}
		b.choose("#try-tool", "nested")
		b.same(b.call(), `{"where":{}}`)
		b.choose("#try-tool", "flat")
		b.do(chromedp.WaitVisible("#try-argument-0"))
	})
}

// same reports arguments that are other ones, or in another order.
func (b *browser) same(got, want string) {
	b.t.Helper()
	if compact := strings.Join(strings.Fields(got), " "); compactJSON(compact) != compactJSON(want) {
		b.t.Errorf("the arguments are %s, want %s", got, want)
	}
}

func compactJSON(text string) string {
	var v json.RawMessage
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return out.String()
}
