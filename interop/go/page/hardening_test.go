package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// Names and texts of clients and servers that are HTML stay texts: nothing of them runs, and
// none becomes an element.
func TestTextsStayTexts(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	evil := func(where string) string {
		return fmt.Sprintf(`<img src=x onerror="window.run='%s'"><script>window.run='%[1]s'</script>`, where)
	}
	quoted := func(s string) string {
		text, _ := json.Marshal(s)
		return string(text)
	}
	cs := w.connect(t, "modern", "2025-11-25", evil("client"), nil)
	if err := cs.Subscribe(t.Context(), subscribeTo("res://item/001")); err != nil {
		t.Fatal(err)
	}
	b.view("live")
	w.send(t, "modern", "tools/call", `"name":`+quoted(evil("tool"))+`,"arguments":{},`, evil("modern"))
	w.send(t, "legacy", "resources/read", `"uri":`+quoted("javascript:window.run='uri'//"+evil("uri"))+`,`, "javascript:alert(1)")
	w.send(t, "legacy", "tools/call", `"name":"`+strings.Repeat("huge<b>", 9000)+`","arguments":{},`, strings.Repeat("n", 100_000))
	b.sees("tools/call", "resources/read")
	for _, id := range []string{"servers", "clients", "follows", "live", "questions", "try"} {
		b.view(id)
		b.clean(id)
	}
	b.view("live")
	for i := range eval[int](b, `document.querySelectorAll('.lines li[data-type="call"] button').length`) {
		b.view("live")
		eval[bool](b, fmt.Sprintf(`document.querySelectorAll('.lines li[data-type="call"] button')[%d].click(); true`, i))
		b.do(chromedp.WaitVisible(".facts"))
		b.clean("call")
	}
	b.picture("texts")
	rig.Until(t, 10*time.Second, "the form", func() string {
		b.view("try")
		if eval[int](b, `document.querySelectorAll('#try-tool option').length`) == 0 {
			return "has no tools"
		}
		return ""
	})
}

// clean reports what of a text has run, or has become an element.
func (b *browser) clean(where string) {
	b.t.Helper()
	if got := eval[string](b, `String(window.run ?? '')`); got != "" {
		b.t.Fatalf("%s: the text of a %s ran", where, got)
	}
	if n := eval[int](b, `document.querySelectorAll('main img, main script, main b, main a[href^="javascript"]').length`); n > 0 {
		b.t.Errorf("%s: %d elements come from texts", where, n)
	}
	if wide := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
		b.t.Errorf("%s: a text makes the page %d pixels wider than the screen", where, wide)
	}
}
