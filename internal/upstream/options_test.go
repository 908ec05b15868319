package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Wrong options are named, and a URL, which may have a secret, is not repeated.
func TestOptionsCheck(t *testing.T) {
	good := func() *Options { return &Options{Name: "s", URL: "https://s.example/mcp", ClientInfo: []byte("{}")} }
	if err := good().Check(""); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(o *Options){
		"no Name":           func(o *Options) { o.Name = "" },
		"no ClientInfo":     func(o *Options) { o.ClientInfo = nil },
		"negative time-out": func(o *Options) { o.Settings.Timeouts.Max = -1 },
		"negative limit":    func(o *Options) { o.Settings.Linger = -1 },
		`Subresources "x"`:  func(o *Options) { o.Settings.Subresources = "x" },
		"URL is not":        func(o *Options) { o.URL = "ftp://secret@s.example" },
	} {
		o := good()
		spoil(o)
		if err := o.Check("its own"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Check() = %v, want %q", err, want)
		}
	}
	if err := good().Check("no such lane"); err == nil || err.Error() != `server "s": no such lane` {
		t.Errorf("Check() = %v, want what the back lacks", err)
	}
}

// Zero is a default everywhere, and the longest time is no shorter than the usual one.
func TestOptionsFill(t *testing.T) {
	o := &Options{Name: "s", Settings: settings.Server{Timeouts: settings.Timeouts{Request: time.Hour}}}
	o.Fill(spec.Modern)
	if o.Settings.Timeouts.Connect != DefaultConnectTimeout || o.Settings.Timeouts.Max != time.Hour || o.Settings.Linger != DefaultLinger || o.Settings.Subresources != fanout.SubresourcesParent || o.MaxMessage == 0 || o.Subscribes == 0 {
		t.Errorf("Fill() made %+v", o)
	}
	o.Doubt("nobody")
	o.Changes.Publish(fanout.Event{})
	o.Changes.End(fanout.Topic{}, nil)
	if o.Changes.Wanted(fanout.Topic{}) {
		t.Error("without Changes something is wanted")
	}
}

// The configuration sets no headers of the protocol, neither at first nor when a credential
// is read again.
func TestBaseHeader(t *testing.T) {
	forged := http.Header{"X-Key": {"1"}, "Mcp-Name": {"forged"}, "mcp-param-x": {"forged"}, "Accept": {"*/*"}, "Host": {"h"}}
	for _, headers := range []http.Header{nil, forged} {
		o := &Options{Headers: headers, Renewed: &Renewed{}}
		base := o.BaseHeader()
		if want := headers.Get("X-Key"); base.Get("X-Key") != want || len(base) > 3 || base.Get("Mcp-Name") != "" || base.Get("Accept") != spec.AcceptBoth {
			t.Errorf("BaseHeader() = %v", base)
		}
		if over := o.Renewed.over(base); len(over) != len(base) {
			t.Errorf("before anything was renewed: %v", over)
		}
		o.Renewed.Set(http.Header{"X-Key": {"2"}, "Mcp-Name": {"forged"}})
		if over := o.Renewed.over(nil); over.Get("X-Key") != "2" || len(over) != 1 {
			t.Errorf("renewed: %v, want the key alone", over)
		}
		if over := o.Renewed.over(base); over.Get("X-Key") != "2" || over.Get("Accept") != spec.AcceptBoth || base.Get("X-Key") == "2" {
			t.Errorf("renewed: %v over %v, want a copy with the new key", over, base)
		}
	}
	var none *Renewed
	if h := none.over(forged); h.Get("X-Key") != "1" {
		t.Errorf("without Renewed: %v", h)
	}
}

// A list is read to its end, which may be an error or the largest number of pages.
func TestPages(t *testing.T) {
	failed := errors.New("no")
	for _, tt := range []struct {
		name  string
		pages []string // the last one is repeated; "" is an error
		want  int      // pages
		err   error
	}{
		{"one", []string{`{"tools":[]}`}, 1, nil},
		{"two", []string{`{"nextCursor":"a"}`, `{"nextCursor":null}`}, 2, nil},
		{"an empty cursor", []string{`{"nextCursor":"a"}`, `{"nextCursor":""}`}, 2, nil},
		{"an error", []string{`{"nextCursor":"a"}`, ""}, 1, failed},
		{"no end", []string{`{"nextCursor":"a"}`}, maxPages, errEndless},
	} {
		asked, got := 0, 0
		var err error
		for _, e := range Pages(t.Context(), spec.MethodToolsList, func(_ context.Context, _ string, params []byte) (json.RawMessage, error) {
			if want := `{"cursor":"a"}`; asked > 0 && string(params) != want {
				t.Errorf("%s: asked for %s, want %s", tt.name, params, want)
			}
			page := tt.pages[min(asked, len(tt.pages)-1)]
			if asked++; page == "" {
				return nil, failed
			}
			return json.RawMessage(page), nil
		}) {
			if err = e; e == nil {
				got++
			}
		}
		if got != tt.want || err != tt.err {
			t.Errorf("%s: %d pages, %v, want %d, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// A server that fails again and again is tried less often, and requests wait for it no
// longer than they should; a stable time forgives.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pause
		fail := func() { p.Note(time.Now(), errors.New("it died")) }
		if left, err := p.Left(); left > 0 || err != nil || p.Failing() != nil {
			t.Errorf("at first: %v, %v", left, err)
		}
		fail()
		if left, err := p.Left(); left > 0 || err != nil || p.Failing() != nil {
			t.Errorf("after one failure: %v, %v, %v, want no pause", left, err, p.Failing())
		}
		begun := time.Now().Add(-time.Second)
		if p.Note(begun, errors.New("late")); p.Failing() != nil {
			t.Error("an attempt from before the last failure counts")
		}
		fail()
		if left, err := p.Left(); left != pauses.Min || err != nil || p.Failing() == nil {
			t.Errorf("after two: %v, %v, %v, want a pause of %v", left, err, p.Failing(), pauses.Min)
		}
		for range 10 {
			time.Sleep(time.Until(p.until))
			fail()
		}
		if left, err := p.Left(); left != 0 || err == nil {
			t.Errorf("after many: %v, %v, want the error at once", left, err)
		}
		time.Sleep(pauses.Max + Stable + time.Second)
		fail()
		if left, err := p.Left(); left > 0 || err != nil || p.Failing() != nil {
			t.Errorf("after a stable time: %v, %v, want no pause", left, err)
		}
	})
}
