package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// Names and texts of clients and servers that are HTML stay texts: nothing of them runs, and
// none becomes an element.
func TestTextsStayTexts(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
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
	for i := range eval[int](b, `document.querySelectorAll('.lines li[data-type="call"] a').length`) {
		b.view("live")
		eval[bool](b, fmt.Sprintf(`document.querySelectorAll('.lines li[data-type="call"] a')[%d].click(); true`, i))
		b.do(chromedp.WaitVisible(".facts"))
		b.clean("call")
	}
	b.picture("texts")
	rig.Until(t, patience, "the form", func() string {
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

// Texts of servers that are HTML stay texts, too: why a server can't be reached, what a tool
// says of itself and of its arguments, its errors, and messages for logs.
func TestTextsOfServersStayTexts(t *testing.T) {
	w := newWorld(t, startEvil(t))
	b := newBrowser(t)
	b.login(w)
	_ = eval[[]string](b, `window.refused = []; document.addEventListener('securitypolicyviolation', (e) => window.refused.push(e.violatedDirective + ' ' + e.blockedURI)); window.refused`)
	b.sees(evil("last error"))
	b.clean("servers")
	b.picture("texts-servers")

	b.view("try")
	b.choose("#try-server", "evil")
	rig.Until(t, patience, "the tools", func() string {
		if got := eval[int](b, `document.querySelectorAll('#try-tool option').length`); got != 2 {
			return fmt.Sprint(got)
		}
		return ""
	})
	b.sees(evil("description"), evil("property"), evil("property title"), evil("property description"), evil("boolean"), "__proto__")
	b.clean("the form")
	if got := eval[string](b, `document.querySelector('#try-argument-0').value`); got != evil("default") {
		t.Errorf("the default is %q", got)
	}
	b.do(chromedp.Click(`.try button[type="submit"]`))
	b.sees("The tool reported an error", "window.run='tool error'")
	b.clean("a result")
	b.choose("#try-tool", evil("tool name"))
	b.do(chromedp.Click(`.try button[type="submit"]`))
	b.sees("Refused, or failed", evil("error"))
	b.clean("an error")
	b.picture("texts-try")

	b.view("live")
	b.sees(evil("tool name"), evil("error"))
	b.clean("live")
	for i := range eval[int](b, `document.querySelectorAll('.lines li[data-type="call"] a').length`) {
		b.view("live")
		eval[bool](b, fmt.Sprintf(`document.querySelectorAll('.lines li[data-type="call"] a')[%d].click(); true`, i))
		b.do(chromedp.WaitVisible(".sides"))
		b.clean("call")
	}
	if refused := eval[[]string](b, `window.refused`); len(refused) > 0 {
		t.Errorf("the policy of the page had to refuse %q", refused)
	}
}

// If a text became markup all the same, the browser would not run it: the policy of the page
// makes no markup out of text, and runs nothing that is in the page.
func TestPolicyRefusesMarkup(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	policy := eval[string](b, `fetch('/').then((r) => r.headers.get('Content-Security-Policy'))`)
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "require-trusted-types-for 'script'", "trusted-types 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy is %s, want %s in it", policy, want)
		}
	}
	b.provokes.Store(true)
	for name, script := range map[string]string{
		"markup":          `document.body.insertAdjacentHTML('beforeend', text)`,
		"inner markup":    `document.getElementById('main').innerHTML = text`,
		"a document":      `document.write(text)`,
		"a frame":         `Object.assign(document.body.appendChild(document.createElement('iframe')), {srcdoc: text})`,
		"text of scripts": `document.body.appendChild(document.createElement('script')).text = "window.run='script'"`,
		"an attribute":    `document.body.appendChild(document.createElement('img')).setAttribute('onerror', "window.run='attribute'")`,
		"a string":        `setTimeout("window.run='string'")`,
		"a link":          `Object.assign(document.body.appendChild(document.createElement('a')), {href: "javascript:window.run='link'"}).click()`,
	} {
		if refused := eval[bool](b, `new Promise((done) => {
			const told = () => done(true);
			document.addEventListener('securitypolicyviolation', told, {once: true});
			setTimeout(() => done(false), 20000);
			const text = `+quoted(evil(name))+`;
			try { `+script+`; } catch { done(true); }
		})`); !refused {
			t.Errorf("%s: not refused", name)
		}
		if got := eval[string](b, `String(window.run ?? '')`); got != "" {
			t.Fatalf("%s ran", got)
		}
	}
}
