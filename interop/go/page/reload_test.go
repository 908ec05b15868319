package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A file with a mistake keeps the configuration before it, and the page says in which line
// the mistake is; a good one is in use, and the page says what has changed, and what needs a
// restart; and whoever looks at the page may have the file read.
func TestReload(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	client := w.connect(t, "modern", "2025-11-25", "stays", nil)
	line := 1 + strings.Count(w.config[:strings.Index(w.config, "command:")], "\n")

	t.Run("mistake", func(t *testing.T) {
		b := b.in(t)
		w.rewrite(t, "command:", "comand:")
		b.sees("its files have changed", "refused: the former one stays in use", fmt.Sprintf("%s:%d: ", w.file, line), "comand")
		if got := b.fact("Line"); got != fmt.Sprint(line) {
			t.Errorf("the page says line %s, want %d", got, line)
		}
		b.servers("gone", "legacy", "modern")
		call(t, client, "text", map[string]any{"size": 1})
		b.picture("reload-mistake")
	})
	t.Run("good", func(t *testing.T) {
		b := b.in(t)
		w.rewrite(t, "the-secret-of-the-server", "another-secret", "the-secret-of-the-url", "a-newer-one", "gone: {", "added: {", "audit:", "log: {format: json}\naudit:")
		b.sees("in use", "Other credentials")
		for name, want := range map[string]string{"Added": "added", "Changed": "legacy", "Removed": "gone", "Other credentials": "modern", "Needs a restart": "log.format", "Line": ""} {
			if got := b.fact(name); got != want {
				t.Errorf("the page says %s: %q, want %q", name, got, want)
			}
		}
		b.servers("added", "legacy", "modern")
		call(t, client, "text", map[string]any{"size": 1}) // in the session from before
		b.picture("reload-good")
	})
	t.Run("from the page", func(t *testing.T) {
		b := b.in(t)
		b.do(chromedp.Click(`main .head button`))
		b.sees("The configuration was read, and is in use.", "POST /reload")
		b.servers("added", "legacy", "modern")
		w.logs(t, `"configuration was reloaded","reason":"POST /reload"`)
	})
	t.Run("a mistake from the page", func(t *testing.T) {
		b := b.in(t)
		w.rewrite(t, "command:", "comand:")
		b.sees("refused: the former one stays in use")
		b.do(chromedp.Click(`main .head button`))
		b.sees("The configuration can't be used: the one before stays in use.", "POST /reload", fmt.Sprintf("%s:%d: ", w.file, line))
		b.servers("added", "legacy", "modern")
		call(t, client, "text", map[string]any{"size": 1})
		b.view("clients")
		if got := b.text("#notice"); got != "" {
			t.Errorf("another view says %q", got)
		}
	})
}

// logs waits for a line of the log: it may come later than what it tells of.
func (w *world) logs(t *testing.T, words string) {
	t.Helper()
	rig.Until(t, patience, "the log", func() string {
		if log := w.Log(); !strings.Contains(log, words) {
			return fmt.Sprintf("it does not have %s:\n%s", words, log)
		}
		return ""
	})
}

// fact returns a fact of the panel of the configuration.
func (b *browser) fact(name string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`[...document.querySelectorAll('main section dl > div')].find((n) => n.querySelector('dt').innerText === %q)?.querySelector('dd').innerText ?? ''`, name))
}

// servers waits until these servers are shown, and no others: first comes the one that is down.
func (b *browser) servers(want ...string) {
	b.t.Helper()
	rig.Until(b.t, patience, "the list of servers", func() string {
		if got := eval[[]string](b, `[...document.querySelectorAll('main td.name')].map((n) => n.innerText.split('\n')[0])`); strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Sprintf("it has %q, want %q", got, want)
		}
		return ""
	})
}
