package page

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// axe-core, which interop/build fetches.
const axe = "../../node/node_modules/axe-core/axe.min.js"

// A screen is what somebody looks at the page with.
type screen struct {
	name       string
	wide, high int64
	dark       bool
}

var screens = []screen{{"light", 1280, 900, false}, {"dark", 1280, 900, true}, {"phone-light", 360, 740, false}, {"phone-dark", 360, 740, true}}

// axe-core finds nothing serious or critical in any view, in light and dark, on a screen and
// on a phone, and no view is wider than a phone.
func TestAxe(t *testing.T) {
	w := newWorld(t, startTools(t))
	answer := make(chan string)
	one := w.connect(t, "legacy", "2026-07-28", "modern-sdk", func() string { return <-answer })
	two := w.connect(t, "modern", "2025-11-25", "legacy-sdk", nil)
	if err := two.Subscribe(t.Context(), subscribeTo("res://item/001")); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t)
	b.login(w)
	asked := make(chan struct{})
	go func() { // ends with the call, whose question is answered below
		defer close(asked)
		call(t, one, "ask", map[string]any{"nonce": "n"})
	}()
	b.view("questions")
	b.sees("elicitation/create")
	w.get(t, "/api/calls", new(any)) // so that somebody looks while the page does not: else the call is forgotten
	b.bringAxe()
	b.openForm("flat")
	for _, s := range screens {
		b.screen(s.wide, s.high, s.dark)
		for _, id := range []string{"servers", "clients", "follows", "live", "questions", "quirks", "logins", "try"} {
			t.Run(s.name+"/"+id, func(t *testing.T) {
				b := b.in(t)
				eval[bool](b, fmt.Sprintf(`location.hash = %q; true`, id))
				b.do(chromedp.WaitVisible(fmt.Sprintf(`#views a[href="#%s"][aria-current]`, id)))
				b.picture(id + "-" + s.name)
				b.judge()
			})
		}
	}
	b.view("try")
	b.raw()
	for _, s := range screens {
		b.screen(s.wide, s.high, s.dark)
		t.Run(s.name+"/try-json", func(t *testing.T) {
			b := b.in(t)
			b.do(chromedp.WaitVisible("#try-arguments"))
			b.picture("try-json-" + s.name)
			b.judge()
		})
	}
	answer <- "n"
	<-asked
	b.view("live")
	b.do(chromedp.Click(`.lines li[data-type="call"] a`), chromedp.WaitVisible(".sides"))
	for _, s := range screens {
		b.screen(s.wide, s.high, s.dark)
		t.Run(s.name+"/call", func(t *testing.T) {
			b := b.in(t)
			b.picture("call-" + s.name)
			b.judge()
		})
	}
}

// bringAxe brings axe-core into the page.
func (b *browser) bringAxe() {
	b.t.Helper()
	source, err := os.ReadFile(axe)
	if err != nil {
		b.t.Fatalf("%v: interop/build fetches it", err)
	}
	// What axe-core itself adds to the page is not of the page's policy.
	if _, err := chromedp.Call(b.ctx, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true}); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Reload(), chromedp.WaitVisible("#views a"))
	eval[bool](b, string(source)+"; true")
}

// judge has axe-core look at the page, and looks whether it is wider than the screen.
func (b *browser) judge() {
	b.t.Helper()
	found := eval[[]string](b, `axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
		.map((v) => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')))`)
	if len(found) > 0 {
		b.t.Errorf("axe-core found:\n%s", strings.Join(found, "\n"))
	}
	if wide := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
		b.t.Errorf("the page is %d pixels wider than the screen", wide)
	}
}

// Everything is reached with a keyboard: the first stop is the link that skips the
// navigation, and each stop is seen.
func TestKeyboard(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	eval[bool](b, `document.activeElement.blur(); window.focus(); true`)
	var stops []string
	for range 14 {
		b.do(chromedp.KeyEvent("\t"))
		stops = append(stops, eval[string](b, `(() => { const a = document.activeElement; const s = getComputedStyle(a);
			return (a.textContent || a.id).trim() + (a.matches(':focus-visible') && s.outlineStyle !== 'none' ? '' : ' (not seen)'); })()`))
	}
	all := strings.Join(stops, "\n")
	if strings.Contains(all, "(not seen)") && !strings.Contains(all, "Skip to the content") {
		t.Errorf("the stops of the tab key are:\n%s", all)
	}
	for _, want := range []string{"Skip to the content", "Log out", "Servers", "Groups", "Clients", "Follows", "Live", "Questions", "Quirks", "Try it"} {
		if !strings.Contains(all, want) {
			t.Errorf("no stop at %q; the stops of the tab key are:\n%s", want, all)
		}
	}
	eval[bool](b, `document.querySelector('#views a[href="#live"]').focus(); true`)
	b.do(chromedp.KeyEvent("\r"), chromedp.WaitVisible("#pause"))
	if at := eval[string](b, `document.activeElement.id`); at != "main" {
		t.Errorf("after a view was opened the focus is at %q, want main", at)
	}
	// A refresh of the state does not move the focus.
	b.view("servers")
	eval[bool](b, `document.querySelector('#views a[href="#clients"]').focus(); true`)
	w.send(t, "legacy", "tools/list", "", "someone")
	b.sees("Servers")
	if at := eval[string](b, `document.activeElement.getAttribute('href')`); at != "#clients" {
		t.Errorf("after a refresh the focus is at %q", at)
	}
}
