package page

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// tries opens the form at something of a server, as a client of a revision.
func (b *browser) tries(server, revision, kind, item string) {
	b.t.Helper()
	b.view("try")
	b.choose("#try-server", server)
	b.choose("#try-era", revision)
	b.choose("#try-kind", kind)
	b.picks(item)
}

// picks chooses one of what is offered, once it is.
func (b *browser) picks(item string) {
	b.t.Helper()
	rig.Until(b.t, patience, item, func() string {
		names := eval[[]string](b, `[...document.querySelectorAll('#try-tool option')].map((n) => n.value)`)
		for _, name := range names {
			if name == item {
				return ""
			}
		}
		return fmt.Sprint(names, b.text("#try-problem"))
	})
	b.choose("#try-tool", item)
}

const sends = `.try form.panel > .buttons button[type="submit"]`

// fill types into an input without a click.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(selector), chromedp.SetValue(selector, text))
}

// ends waits for the end of what is tried, and returns the result.
func (b *browser) ends(how string) string {
	b.t.Helper()
	rig.Until(b.t, patience, how, func() string {
		if took := b.text(".try [role=status]"); !strings.HasPrefix(took, how) {
			return took + b.text("#try-result")
		}
		return ""
	})
	return b.text("#try-result")
}

// comesBeside returns how far the button of a question moves as the link and the progress of its
// call appear.
const comesBeside = `(() => {
  const top = () => document.querySelector('.question button[type="submit"]').getBoundingClientRect().top;
  const [link, bar] = [document.querySelector('#try-link'), document.querySelector('.try progress')];
  const was = [...link.childNodes];
  link.replaceChildren();
  const before = top();
  link.textContent = 'Both sides of this call';
  bar.hidden = false;
  const moved = top() - before;
  link.replaceChildren(...was);
  bar.hidden = true;
  return moved;
})()`

// A person answers a question of a server in four clicks: the view, the tool, Call, and Answer.
// It is the same as a client of either era, and the question is seen from both sides.
func TestAnswerAQuestion(t *testing.T) {
	w := newWorld(t)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			b := newBrowser(t)
			b.login(w)
			b.view("try") // 1
			if revision != "2026-07-28" {
				b.choose("#try-era", revision) // a client of the other era is one more
			}
			b.picks("ask") // 2
			b.fill("#try-argument-0", "n-1")
			b.do(chromedp.Click(sends)) // 3
			b.sees("The server asks", "n-1")
			b.picture("question-" + revision)
			if moved := eval[float64](b, comesBeside); moved != 0 {
				t.Errorf("the button to answer moves by %v pixels once the call is linked", moved)
			}
			b.fill(`.question input`, "answered by a person")
			b.do(chromedp.Click(`.question button[type="submit"]`)) // 4
			if got := b.ends("Done"); !strings.Contains(got, "answered by a person") {
				t.Errorf("the result is %s", got)
			}
			b.do(chromedp.WaitVisible("#try-link a"), chromedp.Click("#try-link a"), chromedp.WaitVisible(".sides"))
			b.sees("elicitation/create", "answered by a person", "Server, legacy", map[bool]string{true: "Client, modern", false: "Client, legacy"}[revision == "2026-07-28"])
			server := eval[string](b, `[...document.querySelectorAll('.message.right pre')].map((n) => n.textContent).join('\n')`)
			for _, want := range []string{`"method": "elicitation/create"`, `"action": "accept"`} {
				if !strings.Contains(server, want) {
					t.Errorf("the server's side has no %s:\n%s", want, server)
				}
			}
		})
	}
}

// Whatever a server has is tried, with both eras of client: prompts, resources, completion,
// subscriptions, sampling and roots, progress, images and sounds.
func TestTryIt(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) { tryAll(t, w, b.in(t), revision) })
	}
}

func tryAll(t *testing.T, w *world, b *browser, revision string) {
	b.tries("modern", revision, "tools", "test_sampling")
	b.fill("#try-argument-0", "what is it")
	b.do(chromedp.Click(sends))
	b.sees("The server wants a model to write", "what is it")
	b.fill(".question textarea", "a bridge")
	b.do(chromedp.Click(`.question button[type="submit"]`))
	if got := b.ends("Done"); !strings.Contains(got, "the model says: a bridge") {
		t.Errorf("sampling: the result is %s", got)
	}

	b.picks("test_tool_with_progress")
	if got := b.text("#try-result"); got != "" {
		t.Errorf("the result of another tool is shown: %s", got)
	}
	b.do(chromedp.Click(sends))
	b.ends("Done")
	b.sees("100 of 100")

	b.picks("test_multiple_content_types")
	b.do(chromedp.Click(sends))
	b.ends("Done")
	rig.Until(t, patience, "the image", func() string {
		if eval[bool](b, `(() => { const c = document.querySelector('.media canvas'); return c && c.getContext('2d').getImageData(0, 0, 1, 1).data[3] > 0; })()`) {
			return ""
		}
		return b.text(".media")
	})
	b.picks("test_audio_content")
	b.do(chromedp.Click(sends))
	b.ends("Done")
	b.do(chromedp.WaitVisible(".media button"), chromedp.Click(".media button"))
	b.sees("audio/wav")

	b.tries("modern", revision, "prompts", "test_prompt_with_arguments")
	b.do(chromedp.WaitVisible("#try-argument-1"), chromedp.SendKeys("#try-argument-0", "par"))
	rig.Until(t, patience, "the completions", func() string {
		if got := eval[string](b, `[...document.querySelectorAll('#try-argument-0-offers option')].map((n) => n.value).join()`); got != "paris,park,party" {
			return got
		}
		return ""
	})
	b.fill("#try-argument-1", "two")
	b.do(chromedp.Click(sends))
	if got := b.ends("Done"); !strings.Contains(got, "par") || !strings.Contains(got, "two") {
		t.Errorf("the prompt is %s", got)
	}
	b.tries("modern", revision, "resources", "test://template/{id}/data")
	b.fill("#try-argument-0", "x y")
	b.do(chromedp.Click(sends))
	if got := b.ends("Done"); !strings.Contains(got, "templateTest") {
		t.Errorf("the resource is %s", got)
	}
	followAChange(t, w, b)
}

// followAChange has a resource change: each change is shown once.
func followAChange(t *testing.T, w *world, b *browser) {
	b.picks("res://item/007")
	b.do(chromedp.Click("#try-follow"))
	b.sees("Changes of res://item/007 are shown until you stop.")
	touch := w.connect(t, "modern", "2026-07-28", "toucher", nil)
	touches := 0
	rig.Until(t, patience, "the change", func() string {
		n := strings.Count(b.text(".notes"), "changed: res://item/007")
		if n > 0 && n <= touches { // one may be shown late, or was made before there was a subscription
			return ""
		}
		if n == 0 {
			call(t, touch, "touch", map[string]any{"uris": []string{"res://item/007"}})
			touches++
			time.Sleep(200 * time.Millisecond)
		}
		return fmt.Sprintf("%d shown of %d", n, touches)
	})
	b.do(chromedp.Click("#try-stop"))
	b.ends("Stopped")
}

// A result outlives neither its tool nor its server, and what waits for an answer ends with it.
func TestResultsEnd(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	b.tries("modern", "2026-07-28", "tools", "text")
	b.fill("#try-argument-0", "17")
	b.do(chromedp.Click(sends))
	b.ends("Done")
	b.choose("#try-tool", "ask")
	if got := b.text("#try-result") + b.text(".try [role=status]"); got != "" {
		t.Errorf("after another tool was chosen there is still %s", got)
	}
	b.do(chromedp.Click(sends))
	b.do(chromedp.WaitVisible(".question"))
	b.choose("#try-tool", "text")
	if n := eval[int](b, `document.querySelectorAll('.question').length`); n != 0 {
		t.Errorf("%d questions of another tool wait", n)
	}
	b.fill("#try-argument-0", "17")
	b.do(chromedp.Click(sends))
	b.ends("Done")
	w.rewrite(t, "modern: {", "instead: {")
	rig.Until(t, patience, "the end of the server", func() string {
		if got := eval[string](b, `[...document.querySelectorAll('#try-server option')].map((n) => n.value).join()`); strings.Contains(got, "modern") || !strings.Contains(got, "instead") {
			return got
		}
		return ""
	})
	if got := b.text("#try-result") + b.text(".try [role=status]"); got != "" {
		t.Errorf("after its server has gone there is still %s", got)
	}
}

// The address at which the page tries things needs what everything else there needs.
func TestTryNeedsTheToken(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		name, method, token string
		status              int
	}{
		{"without a token", "POST", "", 401},
		{"with a wrong one", "POST", "wrong", 401},
		{"a stream without one", "GET", "", 401},
		{"with the token", "POST", token, 200},
	} {
		if got := w.tryRaw(t, tt.method, tt.token); got != tt.status {
			t.Errorf("%s: status %d, want %d", tt.name, got, tt.status)
		}
	}
}

func (w *world) tryRaw(t *testing.T, method, token string) int {
	t.Helper()
	b := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	req := rawRequest(t, method, w.admin+"/api/mcp/modern", b)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return statusOf(t, req)
}

func rawRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	return req
}

func statusOf(t *testing.T, req *http.Request) int {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// axe-core finds nothing serious in a question, a result and the lines of a call with its steps, in
// light and dark, on a screen and on a phone, and nothing is wider than a phone. With a keyboard
// alone a question is answered.
func TestAxeQuestion(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	b.bringAxe()
	b.tries("modern", "2026-07-28", "tools", "test_elicitation_sep1330_enums")
	b.do(chromedp.Click(sends), chromedp.WaitVisible(".question"))
	judged := func(name string) {
		for _, s := range screens {
			b.screen(s.wide, s.high, s.dark)
			t.Run(s.name+"/"+name, func(t *testing.T) {
				b := b.in(t)
				b.picture(name + "-" + s.name)
				b.judge()
			})
		}
	}
	judged("question")
	if at := eval[string](b, `document.activeElement.closest('.question') ? 'there' : document.activeElement.outerHTML`); at != "there" {
		t.Errorf("the focus is at %s, want the question", at)
	}
	eval[bool](b, `document.querySelector('.question button[type="submit"]').focus(); true`)
	b.do(chromedp.KeyEvent("\r"))
	b.ends("Done")
	b.picks("test_multiple_content_types")
	b.do(chromedp.Click(sends))
	b.ends("Done")
	judged("result")
	b.view("live")
	b.sees("test_multiple_content_types")
	eval[bool](b, `document.querySelectorAll('.lines details').forEach((d) => { d.open = true; }); true`)
	judged("steps")
	eval[bool](b, `document.querySelector('.lines a').focus(); true`)
	b.do(chromedp.KeyEvent("\r"), chromedp.WaitVisible(".sides"))
	eval[bool](b, `document.querySelectorAll('.sides details').forEach((d) => { d.open = true; }); true`)
	judged("headers")
}
