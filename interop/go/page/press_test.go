package page

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// What is pressed is clicked, though the page draws it anew before it is released, as it does when a
// server's state changes. What is new is shown after that.
func TestPressedStays(t *testing.T) {
	b := newBrowser(t)
	b.login(newWorld(t))
	eval[bool](b, `(async () => {
		const {el, replace} = await import('/assets/dom.js');
		const node = el('div', {id: 'pressed-in'});
		node.style.cssText = 'position: fixed; inset: 0 auto auto 0; z-index: 9';
		window.clicks = [];
		window.draw = (text) => replace(node, el('button', {type: 'button', onclick: () => window.clicks.push(text)}, text));
		draw('former');
		document.body.append(node);
		return true;
	})()`)
	for i, next := range []string{"later", "last"} {
		at := eval[[]float64](b, `(() => { const r = document.querySelector('#pressed-in button').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
		mouse := func(what input.DispatchMouseEventType) {
			t.Helper()
			if _, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: what, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 1}); err != nil {
				t.Fatal(err)
			}
		}
		mouse(input.DispatchMouseEventTypeMousePressed)
		shown := eval[string](b, `(() => { draw('dropped'); draw('`+next+`'); return document.querySelector('#pressed-in').innerText; })()`)
		mouse(input.DispatchMouseEventTypeMouseReleased)
		b.sees(next)
		former := []string{"former", "later"}[i]
		if clicks := eval[[]string](b, `window.clicks`); shown != former || len(clicks) != i+1 || clicks[i] != former {
			t.Errorf("%q was shown while pressed, and the clicks are %q; want %q to stay and to be clicked", shown, clicks, former)
		}
	}
}
