package back

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// answersAfter is the ask of a client that takes its time.
func answersAfter(d time.Duration, result string) func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
	return func(ctx context.Context, _ mcp.InputRequest) (mcp.InputResponse, error) {
		return mcp.InputResponse{Result: []byte(result)}, wake.Wait(ctx, d)
	}
}

func TestM2L14TheClockStandsStillWhileParked(t *testing.T) {
	times := settings.Timeouts{Request: time.Minute, Max: 90 * time.Second}
	for _, tt := range []struct {
		name          string
		before, after time.Duration // the server's own time, around the question
		answered      bool
	}{
		{"the wait for an answer", 50 * time.Second, 50 * time.Second, false}, // begun anew, but beyond the maximum
		{"the hard maximum", 30 * time.Second, 55 * time.Second, true},
		{"a server that is slow all the same", time.Second, 61 * time.Second, false},
	} {
		bridgetest.RunBubble(t, "M2L-14 "+tt.name, func(t *testing.T) {
			b := newAsker(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: times}}}, func(a *legacytest.Server) {
				a.Call = func(c *legacytest.ServerCall) string {
					wake.Wait(c.Context(), tt.before)
					c.Elicit()
					wake.Wait(c.Context(), tt.after)
					return said("done")
				}
			})
			begin := time.Now()
			got, err := body(b.Serve(t.Context(), askable("ada"), &backtest.Client{Answer: answersAfter(time.Hour, accepted)}))
			if tt.answered != (err == nil) {
				t.Errorf("Serve = %s, %v after %v", got, err, time.Since(begin))
			}
			if took := time.Since(begin); took < time.Hour || took > time.Hour+times.Max {
				t.Errorf("it took %v, want an hour and what the server is granted", took)
			}
			if err != nil && !strings.Contains(err.Error(), "in time") {
				t.Errorf("error = %v, want a time-out", err)
			}
		})
	}
}

func TestM2L19WithdrawnQuestionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late []wire.Message
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			a.Call = func(c *legacytest.ServerCall) string {
				id, reply := c.SendRequest("elicitation/create", `{"message":"withdrawn"}`)
				time.Sleep(time.Second)
				c.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
				kept := c.Elicit()
				time.Sleep(time.Second)
				select {
				case m := <-reply:
					late = append(late, m)
				default:
				}
				return said(string(kept.Result))
			}
		})
		ended := make(chan error, 1)
		x := &backtest.Client{Answer: func(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
			if text, _ := wire.GetString(q.Params, "message"); text == "withdrawn" {
				<-ctx.Done()
				ended <- ctx.Err()
				return mcp.InputResponse{}, ctx.Err()
			}
			return mcp.InputResponse{Result: []byte(accepted)}, nil
		}}
		got, err := body(b.Serve(t.Context(), askable("ada"), x))
		if err != nil || got != said(accepted) {
			t.Errorf("Serve = %s, %v, want the answer to the question that was kept", got, err)
		}
		if len(late) > 0 {
			t.Errorf("the server heard %s about the question that it withdrew", late[0].Result)
		}
		<-ended
	})
}

// The reader must not hang on a server that asks and asks, and the server must
// hear of it.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			a.Call = func(c *legacytest.ServerCall) string {
				for range maxInputs {
					c.SendRequest("elicitation/create", `{"message":"more"}`)
				}
				m := c.Elicit()
				if m.Error == nil || !strings.Contains(m.Error.Message, "too many") {
					t.Errorf("the server heard %s %v, want a refusal", m.Result, m.Error)
				}
				return said("done")
			}
		})
		if _, err := body(b.Serve(t.Context(), askable("ada"), &backtest.Client{Answer: backtest.NeverAnswers})); err != nil {
			t.Error(err)
		}
	})
}

// A server that has read an answer may use the question's id again at once.
func TestQuestionsFreeTheirIDs(t *testing.T) {
	b := newAsker(t, Options{}, func(a *legacytest.Server) {
		a.Call = func(c *legacytest.ServerCall) string {
			for n := range 500 {
				a.ReuseIDs()
				if m := c.Elicit(); m.Error != nil {
					t.Errorf("question %d with the id 1: %v", n, m.Error)
					break
				}
			}
			return said("done")
		}
	})
	if _, err := body(b.Serve(t.Context(), askable("ada"), &backtest.Client{Answer: backtest.Answers(map[string]string{"elicitation/create": accepted})})); err != nil {
		t.Error(err)
	}
}

// A parked call keeps its stream: when the server ends it, having given an event
// id, the answer is fetched from where it stood. The question is not asked anew.
func TestM2L15ParkedCallsResume(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	parked, replied := make(chan struct{}), make(chan wire.Message, 1)
	var callID wire.ID
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		callID = m.ID
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: ev-1\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\"}}\n\n")
	}
	p.On[""] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if m.Kind() == wire.Response {
			replied <- m
		}
		w.WriteHeader(http.StatusAccepted)
	}
	var once sync.Once
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-Id") != "ev-1" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		once.Do(func() { close(parked) })
		send := legacytest.StartSSE(w)
		select {
		case m := <-replied:
			send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, callID, said(string(m.Result)))
		case <-r.Context().Done():
		}
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	asked := 0
	x := &backtest.Client{Answer: func(ctx context.Context, _ mcp.InputRequest) (mcp.InputResponse, error) {
		asked++
		<-parked // the resumed stream is open while the client thinks
		return mcp.InputResponse{Result: []byte(accepted)}, nil
	}}
	if got, err := body(b.Serve(t.Context(), askable("ada"), x)); err != nil || got != said(accepted) {
		t.Errorf("Serve = %s, %v, want the answer", got, err)
	}
	if n := len(p.Requests("tools/call")); n != 1 || asked != 1 {
		t.Errorf("the call was sent %d times and the client asked %d times, want once each", n, asked)
	}
}

// A server over HTTP that asks on the GET stream gets a session for each call
// that it may ask: four, then they queue.
func TestM2L20LanesOnHTTP(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	var mu sync.Mutex
	streams := make(map[string]chan string) // by session
	sessions, atOnce, most := 0, 0, 0
	inSession := make(map[string]int)
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		mu.Lock()
		sessions++
		id := fmt.Sprintf("s%d", sessions)
		streams[id] = make(chan string, 16)
		mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
		legacytest.AnswerJSON(w, m.ID, legacytest.InitializeResult("2025-11-25", legacytest.Everything))
	}
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		ch := streams[r.Header.Get("Mcp-Session-Id")]
		mu.Unlock()
		send := legacytest.StartSSE(w)
		for {
			select {
			case text := <-ch:
				send("%s", text)
			case <-r.Context().Done():
				return
			}
		}
	}
	hold := make(chan struct{})
	p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		session := r.Header.Get("Mcp-Session-Id")
		who, _ := wire.GetString(wire.Get(m.Params, "arguments"), "who")
		mu.Lock()
		atOnce++
		inSession[session]++
		most = max(most, atOnce)
		if inSession[session] > 1 {
			t.Errorf("two calls run in session %s", session)
		}
		onGet := streams[session]
		mu.Unlock()
		send := func(format string, args ...any) { onGet <- fmt.Sprintf(format, args...) }
		heard, _ := p.Ask(r.Context(), send, "elicitation/create", fmt.Sprintf(`{"message":%q}`, who))
		<-hold
		mu.Lock()
		atOnce--
		inSession[session]--
		mu.Unlock()
		legacytest.AnswerJSON(w, m.ID, said(who+string(heard.Result)))
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, Settings: settings.Server{Isolation: settings.IsolateNothing}}})
	call := func(who string) {
		x := &backtest.Client{Answer: func(_ context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
			got, _ := wire.GetString(q.Params, "message")
			return mcp.InputResponse{Result: fmt.Appendf(nil, `{"action":"accept","content":{"me":%q}}`, got)}, nil
		}}
		want := said(who + fmt.Sprintf(`{"action":"accept","content":{"me":%q}}`, who))
		if got, err := body(b.Serve(t.Context(), askable(who), x)); err != nil || got != want {
			t.Errorf("Serve = %s, %v, want %s", got, err, want)
		}
	}
	close(hold)
	call("first") // alone, so that there is no doubt; from now on they queue
	hold = make(chan struct{})
	var calls sync.WaitGroup
	for i := range 12 {
		calls.Go(func() { call(fmt.Sprintf("caller-%d", i)) })
	}
	for deadline := time.Now().Add(bridgetest.Patience); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		n := atOnce
		mu.Unlock()
		if n == 4 || time.Now().After(deadline) {
			break
		}
	}
	close(hold)
	calls.Wait()
	if most != 4 || sessions != 4 {
		t.Errorf("%d calls ran at once in %d sessions, want 4 and 4", most, sessions)
	}
}
