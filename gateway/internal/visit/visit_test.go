package visit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const loginPage = "https://as.example/authorize?x=1"

// A locked server runs nothing before its login is done. It is the handler behind a visiting one, and
// the caller of its requests.
type locked struct {
	t        *testing.T
	done     chan struct{}
	declined bool
	calls    []string // their params
	asked    []string // the params of input requests
	answer   func(ctx context.Context) ([]mcp.InputResponse, error)
	err      error // of calls without a login
	era      spec.Era
}

func newLocked(t *testing.T, action string) *locked {
	l := &locked{t: t, done: make(chan struct{}), era: spec.Legacy, err: &mcp.LoginError{Err: wire.Errorf(spec.CodeInternal, "wants a login")}}
	l.answer = func(context.Context) ([]mcp.InputResponse, error) {
		return []mcp.InputResponse{{Result: []byte(`{"action":"` + action + `"}`)}}, nil
	}
	return l
}

func (l *locked) isOpen() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *locked) Serve(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
	l.calls = append(l.calls, string(req.Params))
	if l.isOpen() {
		return mcp.NewResult([]byte(`{"content":[]}`), nil), nil
	}
	return nil, l.err
}

func (l *locked) Notify(context.Context, mcp.Notification) error { return nil }

func (l *locked) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	for _, q := range qs {
		l.asked = append(l.asked, string(q.Params))
	}
	return l.answer(ctx)
}

func (l *locked) where() *mcp.Visit {
	if l.isOpen() || l.declined {
		return nil
	}
	return &mcp.Visit{URL: loginPage, Done: l.done, Decline: func() { l.declined = true }}
}

func (l *locked) serve(era spec.Era, method, capabilities, params string) (*mcp.Result, error) {
	v := Handler(Options{Server: "docs", Where: l.where, Era: func() spec.Era { return l.era }}, l)
	return v.Serve(l.t.Context(), &mcp.Request{Method: method, Era: era, Capabilities: []byte(capabilities), Params: []byte(params)}, l)
}

const takesURLs = `{"elicitation":{"url":{}}}`

// A client that takes URLs is sent to the page, and its call goes on after the login.
func TestCallWaitsForVisit(t *testing.T) {
	for _, era := range []spec.Era{spec.Legacy, spec.Modern} {
		synctest.Test(t, func(t *testing.T) {
			l := newLocked(t, "accept")
			time.AfterFunc(30*time.Second, func() { close(l.done) })
			res, err := l.serve(era, spec.MethodToolsCall, takesURLs, `{"name":"x"}`)
			if err != nil || string(res.Body) != `{"content":[]}` || len(l.calls) != 2 || len(l.asked) != 1 {
				t.Fatalf("%v: the call = %v, %v, sent %q, asked %q; want its result", era, res, err, l.calls, l.asked)
			}
			if mode, _ := wire.GetString([]byte(l.asked[0]), "mode"); mode != "url" || !strings.Contains(l.asked[0], `"url":"`+loginPage+`"`) || !strings.Contains(l.asked[0], "docs") {
				t.Errorf("%v: asked with %s, want the page, and the server's name", era, l.asked[0])
			}
		})
	}
}

// Who can't take URLs, and requests during which nobody may be asked, get the error. So does
// everything that may have been run.
func TestNoVisit(t *testing.T) {
	other := errors.New("the server was lost while it ran the call")
	for _, tt := range []struct {
		name, method, capabilities string
		err                        error
		era                        spec.Era
		asked                      int
	}{
		{"initialize", spec.MethodInitialize, takesURLs, nil, spec.Legacy, 0},
		{"a list", spec.MethodToolsList, takesURLs, nil, spec.Legacy, 0},
		{"no elicitation", spec.MethodToolsCall, `{}`, nil, spec.Legacy, 0},
		{"forms only", spec.MethodToolsCall, `{"elicitation":{}}`, nil, spec.Legacy, 0},
		{"another error", spec.MethodToolsCall, takesURLs, other, spec.Legacy, 0},
		{"a prompt", spec.MethodPromptsGet, takesURLs, nil, spec.Legacy, 1},
		{"any error while the era is unknown", spec.MethodToolsCall, takesURLs, other, spec.Unknown, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLocked(t, "cancel")
			l.era = tt.era
			if tt.err != nil {
				l.err = tt.err
			}
			_, err := l.serve(spec.Legacy, tt.method, tt.capabilities, `{}`)
			if err == nil || len(l.asked) != tt.asked || tt.asked == 0 && !errors.Is(err, l.err) {
				t.Errorf("asked %q, %v, want %d questions and an error", l.asked, err, tt.asked)
			}
		})
	}
}

// A declined page ends the login; one that was merely closed does not.
func TestVisitIsDeclined(t *testing.T) {
	for action, declined := range map[string]bool{"decline": true, "cancel": false} {
		l := newLocked(t, action)
		_, err := l.serve(spec.Legacy, spec.MethodToolsCall, takesURLs, `{}`)
		if err == nil || !strings.Contains(err.Error(), "mcpbridge login") || l.declined != declined || len(l.calls) != 1 {
			t.Errorf("%s: %v, declined %v, calls %d; want an error that names the command", action, err, l.declined, len(l.calls))
		}
	}
}

// A login that ends while the client is being asked needs no answer any more; one that takes
// too long is told.
func TestVisitEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocked(t, "")
		l.answer = func(ctx context.Context) ([]mcp.InputResponse, error) { <-ctx.Done(); return nil, context.Cause(ctx) }
		time.AfterFunc(time.Second, func() { close(l.done) })
		if res, err := l.serve(spec.Legacy, spec.MethodToolsCall, takesURLs, `{}`); err != nil || res == nil {
			t.Errorf("the call = %v, %v, want its result after the login", res, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l, began := newLocked(t, "accept"), time.Now()
		_, err := l.serve(spec.Legacy, spec.MethodToolsCall, takesURLs, `{}`)
		if !errors.Is(err, l.err) || time.Since(began) != visitPatience {
			t.Errorf("%v after %v, want the server's error after %v", err, time.Since(began), visitPatience)
		}
	})
}

// Where nothing parks, since both sides are modern, the client sends the call again with its
// answer, of which the server sees nothing.
func TestVisitWithoutParking(t *testing.T) {
	l := newLocked(t, "")
	l.era = spec.Modern
	l.answer = func(context.Context) ([]mcp.InputResponse, error) { return nil, mcp.ErrCannotAsk }
	res, err := l.serve(spec.Modern, spec.MethodToolsCall, takesURLs, `{"name":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	ask := wire.Get(wire.Get(res.Body, "inputRequests"), visitKey)
	if kind, _ := wire.GetString(res.Body, "resultType"); kind != "input_required" || !strings.Contains(string(ask), loginPage) || res.Era != spec.Modern {
		t.Fatalf("the result is %s, want input_required with the page", res.Body)
	}
	close(l.done)
	const more = `{"name":"x","inputResponses":{"` + visitKey + `":{"action":"accept"},"own":{"action":"accept"}}}`
	for _, tt := range []struct{ params, sent string }{
		{`{"name":"x","inputResponses":{"` + visitKey + `":{"action":"accept"}}}`, `{"name":"x"}`},
		{more, `{"name":"x","inputResponses":{"own":{"action":"accept"}}}`},
	} {
		res, err = l.serve(spec.Modern, spec.MethodToolsCall, takesURLs, tt.params)
		if got := l.calls[len(l.calls)-1]; err != nil || string(res.Body) != `{"content":[]}` || got != tt.sent {
			t.Errorf("the retry = %v, %v, the server got %s, want %s", res, err, got, tt.sent)
		}
	}
}
