package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// patience bounds one step in the browser.
const patience = 3 * time.Minute

// A browser is one tab of Chromium.
type browser struct {
	t        testing.TB
	ctx      context.Context
	provokes atomic.Bool // what the console complains of
}

// newBrowser starts Chromium. What its console complains of fails the test.
func newBrowser(t testing.TB) *browser {
	t.Helper()
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("/usr/bin/chromium"), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), o...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	b := &browser{t: t, ctx: ctx}
	b.screen(1280, 900, false)
	go b.listen() // ends with the tab
	return b
}

// in returns the browser for a part of the test.
func (b *browser) in(t testing.TB) *browser { return &browser{t: t, ctx: b.ctx} }

// listen reports errors of scripts, and what the policy of the page has refused. That a
// request without a session gets 401, and a mistake in the configuration 422, is as it should be.
func (b *browser) listen() {
	for m, err := range chromedp.Console(b.ctx) {
		switch {
		case err != nil:
			return
		case b.provokes.Load():
		case !m.IsException() && m.Type != "error" || strings.Contains(m.Text, "401") || strings.HasSuffix(m.URL, "/reload") || strings.Contains(m.Text, "ERR_CONNECTION_REFUSED"):
		default:
			b.t.Errorf("the console says: %s (%s:%d)", m.Text, m.URL, m.Line)
		}
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for _, a := range actions {
		err := chromedp.Do(ctx, a)
		for err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "Could not find node with given id") {
			err = chromedp.Do(ctx, a)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// opens clicks until the click has shown something: while servers start, what is clicked may move away.
func (b *browser) opens(selector, shown string) {
	b.t.Helper()
	at := eval[string](b, `location.hash`)
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
		for _, a := range []chromedp.Action[chromedp.Void]{chromedp.Click(selector), chromedp.WaitVisible(shown)} {
			if err = chromedp.Do(ctx, a); err != nil {
				break
			}
		}
		cancel()
		if err == nil {
			return
		}
		eval[bool](b, fmt.Sprintf(`location.hash = %q; true`, at))
	}
	b.picture("not-opened")
	b.t.Fatalf("a click at %s does not show %s: %v", selector, shown, err)
}

// eval returns what a script returns.
func eval[T any](b *browser, script string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%v: %s", err, script)
	}
	return v
}

// screen sets the size of the screen, and whether its owner likes it dark.
func (b *browser) screen(wide, high int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do(chromedp.EmulateViewport(wide, high))
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		b.t.Fatal(err)
	}
}

// login types the token.
func (b *browser) login(w *world) {
	b.t.Helper()
	b.do(chromedp.Navigate(w.admin+"/"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\r"), chromedp.WaitVisible("#views a"))
}

// view opens a view by its link.
func (b *browser) view(id string) {
	b.t.Helper()
	link := fmt.Sprintf(`#views a[href="#%s"]`, id)
	b.do(chromedp.Click(link), chromedp.WaitVisible(link+"[aria-current]"))
}

// text returns what is to be read in an element.
func (b *browser) text(selector string) (text string) {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ''`, selector))
}

// sees waits until the page has all of the words.
func (b *browser) sees(words ...string) {
	b.t.Helper()
	var text, missing string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		text, missing = b.text("body"), ""
		for _, word := range words {
			if !strings.Contains(text, word) {
				missing = word
			}
		}
		if missing == "" {
			return
		}
	}
	b.picture("missing")
	b.t.Fatalf("the page has no %q; it has:\n%s", missing, text)
}

// picture keeps a screenshot of the whole page.
func (b *browser) picture(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(pictures, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
