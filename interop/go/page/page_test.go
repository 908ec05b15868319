package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// Each view shows what clients and servers of both eras do.
func TestViews(t *testing.T) {
	w := newWorld(t)
	b := newBrowser(t)
	b.login(w)
	answer := make(chan string)
	one := w.connect(t, "legacy", "2026-07-28", "modern-sdk", func() string { return <-answer })
	two := w.connect(t, "modern", "2025-11-25", "legacy-sdk", nil)
	if err := one.Subscribe(t.Context(), subscribeTo("res://item/00")); err != nil {
		t.Fatal(err)
	}
	if err := two.Subscribe(t.Context(), subscribeTo("res://item/001")); err != nil {
		t.Fatal(err)
	}
	three := w.connect(t, "legacy", "2025-11-25", "relayed-sdk", nil)
	for _, uri := range []string{"res://item/02", "res://item/03"} {
		if err := three.Subscribe(t.Context(), subscribeTo(uri)); err != nil {
			t.Fatal(err)
		}
	}
	if err := three.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "res://item/03"}); err != nil {
		t.Fatal(err)
	}

	t.Run("servers", func(t *testing.T) {
		b := b.in(t)
		b.sees("legacy", "modern", "gone", "ready", "down", "pid ", "MiB", "it answered server/discover", "it refused server/discover")
		b.sees("connection refused")
		b.picture("servers")
	})
	t.Run("clients", func(t *testing.T) {
		b := b.in(t)
		b.view("clients")
		b.sees("modern-sdk/1", "legacy-sdk/1", "2025-11-25", "listen stream", "HTTP session")
		b.picture("clients")
	})
	t.Run("follows", func(t *testing.T) {
		b := b.in(t)
		b.view("follows")
		b.sees("Who follows what")
		rig.Until(t, patience, "the drawing", func() string {
			labels := eval[[]string](b, `[...document.querySelectorAll('.follows text')].map((n) => n.textContent)`)
			all := strings.Join(labels, " ")
			for _, want := range []string{"modern-sdk/1", "legacy-sdk/1", "relayed-sdk/1", "res://item/00", "res://item/001", "res://item/02", "list of tools", "legacy", "modern"} {
				if !strings.Contains(all, want) {
					return "no " + want + " in " + all
				}
			}
			if strings.Contains(all, "res://item/03") {
				return "there is one whose subscription has ended"
			}
			return ""
		})
		b.picture("follows")
		relayedFollows(t, w)
	})
	asked := make(chan struct{})
	go func() { // ends with the call, whose question the test answers
		defer close(asked)
		call(t, one, "ask", map[string]any{"nonce": "n-17"})
	}()
	t.Run("questions", func(t *testing.T) {
		b := b.in(t)
		b.view("questions")
		b.sees("elicitation/create", "tools/call", "ask", "modern-sdk/1")
		b.picture("questions")
		answer <- "n-17"
		<-asked
		b.sees("No server waits for an answer")
	})
	t.Run("live", func(t *testing.T) {
		live(t, b.in(t), func() { call(t, one, "touch", map[string]any{"uris": []string{"res://item/00"}}) })
	})
	t.Run("call", func(t *testing.T) {
		b := b.in(t)
		b.filter("ask")
		b.do(chromedp.Click(`.lines li[data-type="call"] a`), chromedp.WaitVisible(".sides"))
		b.sees("what the client sent", "what the server got", "what the server sent", "what the client got", "Requests to the server", "n-17")
		if text := b.text("body"); strings.Contains(text, "the-secret") {
			t.Error("a secret of the configuration is on the page")
		}
		b.picture("call")
	})
	t.Run("try", func(t *testing.T) { try(t, w, b.in(t)) })
	t.Run("logout", func(t *testing.T) {
		b.do(chromedp.Click("#logout"), chromedp.WaitVisible("#token"))
		b.picture("login")
		b.do(chromedp.Navigate(w.admin+"/"), chromedp.WaitVisible("#token"))
	})
}

// relayedFollows looks for the topics of the client whose session is relayed, as JSON.
func relayedFollows(t *testing.T, w *world) {
	t.Helper()
	var f struct {
		Followers []struct{ Name string }
		Topics    []struct{ Server, Kind, URI string }
		Edges     []struct{ Follower, Topic int }
	}
	w.get(t, "/api/follows", &f)
	var topics []string
	for _, e := range f.Edges {
		if f.Followers[e.Follower].Name == "relayed-sdk/1" {
			topics = append(topics, f.Topics[e.Topic].Server+" "+f.Topics[e.Topic].Kind+" "+f.Topics[e.Topic].URI)
		}
	}
	slices.Sort(topics)
	want := []string{"legacy promptsListChanged ", "legacy resourceUpdated res://item/02", "legacy resourcesListChanged ", "legacy toolsListChanged "}
	if !slices.Equal(topics, want) {
		t.Errorf("/api/follows has the topics %q of the relayed client, want %q", topics, want)
	}
}

// live looks at what passes, with the filter and the pause.
func live(t *testing.T, b *browser, change func()) {
	b.view("live")
	change()
	b.sees("touch", "res://item/00", "1 follower", "ok", "legacy", "modern")
	eval[bool](b, `document.querySelector('.lines details').open = true`)
	b.sees("input required", "input answered", "the client has the question")
	b.picture("live")
	b.filter("touch")
	rig.Until(t, patience, "the filter", func() string {
		if wrong := eval[int](b, `[...document.querySelectorAll('.lines li')].filter((n) => !n.innerText.includes('touch')).length`); wrong > 0 {
			return fmt.Sprintf("%d lines do not fit it", wrong)
		}
		return ""
	})
	count := func() int { return eval[int](b, `document.querySelectorAll('.lines li').length`) }
	b.do(chromedp.Click("#pause"))
	before := count()
	change()
	b.sees("Paused", "passed since")
	if after := count(); after != before {
		t.Errorf("%d lines while paused, %d before", after, before)
	}
	b.do(chromedp.Click("#pause"))
	change()
	rig.Until(t, patience, "going on", func() string {
		if count() > before {
			return ""
		}
		return "no further line"
	})
}

// try calls a tool by the form, which is the principal admin's.
func try(t *testing.T, w *world, b *browser) {
	b.view("try")
	b.choose("#try-server", "modern")
	rig.Until(t, patience, "the tools", func() string {
		names := eval[[]string](b, `[...document.querySelectorAll('#try-tool option')].map((n) => n.value)`)
		if strings.Contains(strings.Join(names, " "), "text") {
			return ""
		}
		return fmt.Sprint(names)
	})
	b.choose("#try-tool", "text")
	b.do(chromedp.WaitVisible("#try-argument-0"), chromedp.SetValue("#try-argument-0", "17"), chromedp.Click(`.try button[type="submit"]`))
	b.sees("Done after")
	if got := b.text("#try-result"); !strings.Contains(got, `"content"`) || !strings.Contains(got, "abcdefghijklmnopq\"") {
		t.Errorf("the result is %s, want 17 letters", got)
	}
	b.picture("try")
	rig.Until(t, patience, "the audit log", func() string {
		if len(w.audited(t, `"principal":"admin"`, `"name":"text"`, `"decision":"allow"`)) == 0 {
			return "has no line of the form's call"
		}
		return ""
	})
}

// choose chooses an option.
func (b *browser) choose(selector, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(selector, value))
	eval[bool](b, fmt.Sprintf(`document.querySelector(%q).dispatchEvent(new Event('change'))`, selector))
}

// filter types into the filter of what passes.
func (b *browser) filter(words string) {
	b.t.Helper()
	eval[bool](b, `document.querySelector('#filter').value = ''; true`)
	b.do(chromedp.SendKeys("#filter", words))
}
