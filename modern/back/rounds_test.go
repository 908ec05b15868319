package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const canAnswer = `{"elicitation":{},"sampling":{},"roots":{"listChanged":true}}`

// askedCall is a call of a client that can be asked.
func askedCall(params string) *mcp.Request {
	r := upRequest("tools/call", params)
	r.Capabilities = json.RawMessage(canAnswer)
	return r
}

// answers is the ask of a client that answers what it has for the method.
func answers(by map[string]string) func(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
	return func(_ context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
		out := make([]mcp.InputResponse, len(qs))
		for i, q := range qs {
			out[i] = mcp.InputResponse{Result: json.RawMessage(by[q.Method])}
			if by[q.Method] == "" {
				out[i] = mcp.InputResponse{Err: wire.Errorf(-1, "user said no")}
			}
		}
		return out, nil
	}
}

var willing = map[string]string{
	"elicitation/create":     `{"action":"accept","content":{"n":1.0}}`,
	"sampling/createMessage": `{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}`,
	"roots/list":             `{"roots":[]}`,
}

// scriptedRounds makes a peer answer one round of a call after the other.
func scriptedRounds(t *testing.T, rounds ...string) *upPeer {
	p := newUpPeer(t)
	p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		n := len(p.requests("tools/call"))
		if n > len(rounds) {
			t.Errorf("request %d of %d", n, len(rounds))
			n = len(rounds)
		}
		upAnswer(w, m.ID, rounds[n-1])
	}
	return p
}

func TestL2M13Rounds(t *testing.T) {
	p := scriptedRounds(t,
		`{"resultType":"input_required","inputRequests":{"\u0071":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}},"r":{"method":"roots/list"}},"requestState":"a\u0062/+ \"","content":null}`,
		`{"resultType":"input_required","inputRequests":{"s":{"method":"sampling/createMessage","params":{"messages":[]}}}}`,
		said("done"))
	x := &backtest.Caller{Ask: answers(willing)}
	req := askedCall(`{"name":"t","arguments":{"n": 1.0,"b":[ ]},"_meta":{"progressToken":5}}`)
	req.ProgressToken = json.RawMessage(`5`)
	body, err := upBody(p.back(Options{}).Serve(t.Context(), req, x))
	if err != nil || body != said("done") {
		t.Fatalf("Serve = %s, %v, want the last result", body, err)
	}
	seen := p.requests("tools/call")
	wantMembers := []string{
		``,
		`"requestState":"a\u0062/+ \"","inputResponses":{"\u0071":{"action":"accept","content":{"n":1.0}},"r":{"roots":[]}}`,
		`"inputResponses":{"s":` + willing["sampling/createMessage"] + `}`,
	}
	ids := make(map[string]bool)
	for i, s := range seen {
		ids[s.id] = true
		var got []string
		for k, v := range wire.Members([]byte(s.params)) {
			if k.Is("requestState") || k.Is("inputResponses") {
				got = append(got, string(k)+":"+string(v))
			}
		}
		if sorted(strings.Join(got, ",")) != sorted(wantMembers[i]) {
			t.Errorf("round %d carries %s, want %s", i, got, wantMembers[i])
		}
		if arguments := string(wire.Get([]byte(s.params), "arguments")); arguments != `{"n": 1.0,"b":[ ]}` {
			t.Errorf("round %d: arguments %s, want the same bytes", i, arguments)
		}
		if token := string(wire.Get(wire.Get([]byte(s.params), "_meta"), "progressToken")); token != s.id {
			t.Errorf("round %d: progress token %s, want the id %s", i, token, s.id)
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d different ids in 3 rounds", len(ids))
	}
	if len(x.Asked()) != 2 || len(x.Asked()[0]) != 2 || x.Asked()[0][1].Method != "roots/list" || x.Asked()[0][1].Params != nil ||
		string(x.Asked()[0][0].Params) != `{"message":"m","requestedSchema":{}}` {
		t.Errorf("asked %v, want two questions at once and then one", x.Asked())
	}
}

// sorted makes members comparable whatever their order.
func sorted(members string) string {
	return string(wire.AppendCanonical(nil, []byte("{"+members+"}")))
}

func TestL2M13CapabilityIsCheckedFirst(t *testing.T) {
	for _, tt := range []struct {
		id, name, capabilities, asks, want string
	}{
		{"L2M-13", "sampling", `{"elicitation":{}}`, `"a":{"method":"elicitation/create","params":{"message":"m"}},"b":{"method":"sampling/createMessage","params":{}}`, `{"sampling":{}}`},
		{"L2M-13", "tools in sampling", `{"sampling":{}}`, `"b":{"method":"sampling/createMessage","params":{"tools":[]}}`, `{"sampling":{"tools":{}}}`},
		{"L2M-13", "roots", `{}`, `"b":{"method":"roots/list"}`, `{"roots":{}}`},
		{"L2M-14", "bare elicitation means forms", `{"elicitation":{}}`, `"b":{"method":"elicitation/create","params":{"mode":"url","url":"https://x"}}`, `{"elicitation":{"url":{}}}`},
		{"L2M-13", "forms of a client for URLs", `{"elicitation":{"url":{}}}`, `"b":{"method":"elicitation/create","params":{"mode":"form"}}`, `{"elicitation":{"form":{}}}`},
	} {
		t.Run(tt.id+" "+tt.name, func(t *testing.T) {
			p := scriptedRounds(t, `{"resultType":"input_required","inputRequests":{`+tt.asks+`}}`)
			x := &backtest.Caller{Ask: answers(willing)}
			req := askedCall(`{"name":"t"}`)
			req.Capabilities = json.RawMessage(tt.capabilities)
			_, err := p.back(Options{}).Serve(t.Context(), req, x)
			e := wireErr(t, err)
			if e.Code != spec.CodeMissingCapability || string(wire.Get(e.Data, "requiredCapabilities")) != tt.want {
				t.Errorf("error %d %s, want -32021 for %s", e.Code, e.Data, tt.want)
			}
			if !strings.Contains(e.Message, tt.want) || !strings.Contains(e.Message, "scripted") || len(x.Asked()) != 0 {
				t.Errorf("message %q after %d rounds, want the capability and the server named, and nobody asked", e.Message, len(x.Asked()))
			}
		})
	}
	t.Run("L2M-14 a client for URLs is asked", func(t *testing.T) {
		p := scriptedRounds(t, `{"resultType":"input_required","inputRequests":{"u":{"method":"elicitation/create","params":{"mode":"url","url":"https://x","message":"m"}}}}`, said("ok"))
		req := askedCall(`{"name":"t"}`)
		req.Capabilities = json.RawMessage(`{"elicitation":{"url":{}}}`)
		x := &backtest.Caller{Ask: answers(map[string]string{"elicitation/create": `{"action":"accept"}`})}
		if body, err := upBody(p.back(Options{}).Serve(t.Context(), req, x)); err != nil || body != said("ok") {
			t.Errorf("Serve = %s, %v, want the result", body, err)
		}
		if got := string(x.Asked()[0][0].Params); got != `{"mode":"url","url":"https://x","message":"m"}` {
			t.Errorf("asked %s, want the server's own params", got)
		}
	})
}

func TestL2M13AnswersThatAreNone(t *testing.T) {
	const ask = `{"resultType":"input_required","inputRequests":{"k":{"method":%q,"params":{}}},"requestState":"s"}`
	for _, tt := range []struct {
		name, method, answer, want string // want: the response; empty: the call fails
	}{
		{"declined", "elicitation/create", `{"action":"decline"}`, `{"action":"decline"}`},
		{"cancelled", "elicitation/create", `{"action":"cancel"}`, `{"action":"cancel"}`},
		{"an elicitation that failed", "elicitation/create", "", `{"action":"cancel"}`},
		{"an elicitation nobody can read", "elicitation/create", `{"action":"maybe"}`, `{"action":"cancel"}`},
		{"sampling refused", "sampling/createMessage", "", ""},
		{"sampling nobody can read", "sampling/createMessage", `{"text":1}`, ""},
		{"roots refused", "roots/list", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := scriptedRounds(t, fmt.Sprintf(ask, tt.method), said("ok"))
			x := &backtest.Caller{Ask: answers(map[string]string{tt.method: tt.answer})}
			_, err := upBody(p.back(Options{}).Serve(t.Context(), askedCall(`{"name":"t"}`), x))
			seen := p.requests("tools/call")
			if tt.want == "" {
				if e := wireErr(t, err); len(seen) != 1 || !strings.Contains(e.Message, tt.method) {
					t.Errorf("%v after %d requests, want a failure that names %s, and no retry", e, len(seen), tt.method)
				}
				return
			}
			if err != nil || len(seen) != 2 {
				t.Fatalf("Serve = %v after %d requests, want the retry", err, len(seen))
			}
			if got := string(wire.Get(wire.Get([]byte(seen[1].params), "inputResponses"), "k")); got != tt.want {
				t.Errorf("the server was told %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("nobody to ask", func(t *testing.T) {
		p := scriptedRounds(t, fmt.Sprintf(ask, "roots/list"))
		if _, err := p.back(Options{}).Serve(t.Context(), askedCall(`{"name":"t"}`), &backtest.Caller{}); !strings.Contains(wireErr(t, err).Message, "can't be asked") {
			t.Errorf("error %v, want that the client can't be asked", err)
		}
	})
	t.Run("a question nobody knows", func(t *testing.T) {
		p := scriptedRounds(t, fmt.Sprintf(ask, "tools/call"))
		x := &backtest.Caller{Ask: answers(willing)}
		if _, err := p.back(Options{}).Serve(t.Context(), askedCall(`{"name":"t"}`), x); err == nil || len(x.Asked()) != 0 {
			t.Errorf("Serve = %v after asking %d times, want an error and no question", err, len(x.Asked()))
		}
	})
	t.Run("neither questions nor state", func(t *testing.T) {
		p := scriptedRounds(t, `{"resultType":"input_required"}`)
		if _, err := p.back(Options{}).Serve(t.Context(), askedCall(`{"name":"t"}`), &backtest.Caller{}); err == nil {
			t.Error("Serve succeeded, want an error")
		}
	})
}

func TestL2M13AtMostTenRounds(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/call", `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}`)
	x := &backtest.Caller{Ask: answers(willing)}
	_, err := p.back(Options{}).Serve(t.Context(), askedCall(`{"name":"t"}`), x)
	if e := wireErr(t, err); len(x.Asked()) != 10 || len(p.requests("tools/call")) != 11 || !strings.Contains(e.Message, "10") {
		t.Errorf("asked %d times in %d requests, then %v; want 10, 11 and an error that says so", len(x.Asked()), len(p.requests("tools/call")), e)
	}
}

func TestL2M13RetriesAreNotRepeated(t *testing.T) {
	p := newUpPeer(t)
	p.on["resources/read"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if len(p.requests("resources/read")) > 1 {
			panic(http.ErrAbortHandler)
		}
		upAnswer(w, m.ID, `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"once"}`)
	}
	req := upRequest("resources/read", `{"uri":"file:///a"}`)
	req.Capabilities = json.RawMessage(canAnswer)
	_, err := p.back(Options{}).Serve(t.Context(), req, &backtest.Caller{Ask: answers(willing)})
	if n := len(p.requests("resources/read")); err == nil || n != 2 {
		t.Errorf("Serve = %v after %d requests, want a failure: a requestState may be good for one use", err, n)
	}
}

// bubbleBack returns a Back of a handler in a synctest bubble, and what ends both.
func bubbleBack(t *testing.T, opts Options, serve func(w http.ResponseWriter, r *http.Request, m wire.Message)) (*Back, func()) {
	l := bridgetest.Listen()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, _ := wire.Parse(data, wire.Options{})
		serve(w, r, m)
	})}
	go srv.Serve(l) // ends with Close
	tr := l.Transport()
	opts.Name, opts.URL, opts.RoundTripper, opts.ClientInfo = "scripted", "http://127.0.0.1", tr, json.RawMessage(upInfo)
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return b, func() {
		b.Close(context.Background())
		tr.CloseIdleConnections()
		srv.Close()
	}
}

func TestL2M13StateOnlyBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		b, end := bubbleBack(t, Options{}, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			at = append(at, time.Since(start))
			if wire.Get(m.Params, "inputResponses") != nil {
				t.Error("inputResponses where nothing was asked")
			}
			state, _ := wire.GetString(m.Params, "requestState")
			if len(at) == 4 {
				upAnswer(w, m.ID, said("ok after "+state))
				return
			}
			requests := ""
			if len(at) == 2 {
				requests = `"inputRequests":{},`
			}
			upAnswer(w, m.ID, fmt.Sprintf(`{"resultType":"input_required",%s"requestState":"s%d"}`, requests, len(at)))
		})
		defer end()
		body, err := upBody(b.Serve(t.Context(), askedCall(`{"name":"t"}`), &backtest.Caller{}))
		if err != nil || body != said("ok after s3") {
			t.Errorf("Serve = %s, %v, want the result for the last state", body, err)
		}
		for i, want := range []time.Duration{0, 250 * time.Millisecond, 750 * time.Millisecond, 1750 * time.Millisecond} {
			if at[i] != want {
				t.Errorf("request %d after %v, want %v", i+1, at[i], want)
			}
		}
	})
}

func TestL2M13RoundIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := bubbleBack(t, Options{}, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			upAnswer(w, m.ID, `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}`)
		})
		defer end()
		never := func(ctx context.Context, _ []mcp.InputRequest) ([]mcp.InputResponse, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		start := time.Now()
		_, err := b.Serve(t.Context(), askedCall(`{"name":"t"}`), &backtest.Caller{Ask: never})
		if took := time.Since(start); took != 10*time.Minute || !strings.Contains(wireErr(t, err).Message, "did not answer in time") {
			t.Errorf("Serve = %v after %v, want a failure after 10m", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Serve(ctx, askedCall(`{"name":"t"}`), &backtest.Caller{Ask: never}); !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "deadline") {
			t.Errorf("Serve of a client that left = %v, want its reason", err)
		}
	})
}

func TestM2L14ClockStandsStillWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		b, end := bubbleBack(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: time.Minute, Max: 2 * time.Minute}}}}, func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			if n.Add(1) <= 3 {
				upAnswer(w, m.ID, `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}`)
				return
			}
			<-r.Context().Done()
		})
		defer end()
		slow := func(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
			time.Sleep(9 * time.Minute)
			return answers(willing)(ctx, qs)
		}
		start := time.Now()
		_, err := b.Serve(t.Context(), askedCall(`{"name":"t"}`), &backtest.Caller{Ask: slow})
		if took := time.Since(start); took != 28*time.Minute || !strings.Contains(wireErr(t, err).Message, "in time") {
			t.Errorf("Serve = %v after %v, want a time-out one minute after three rounds of 9m", err, took)
		}
	})
}

// A silent server has as long as the client waits, but for a list.
func TestM2L14Patience(t *testing.T) {
	for _, tt := range []struct {
		method string
		want   time.Duration
	}{{"tools/call", upstream.DefaultMaxTimeout}, {"resources/read", upstream.DefaultMaxTimeout}, {"tools/list", settings.ListTimeout}} {
		bridgetest.RunBubble(t, tt.method, func(t *testing.T) {
			b, end := bubbleBack(t, Options{}, func(_ http.ResponseWriter, r *http.Request, _ wire.Message) { <-r.Context().Done() })
			defer end()
			start := time.Now()
			_, err := b.Serve(t.Context(), upRequest(tt.method, `{"name":"t","uri":"x:/"}`), &backtest.Caller{})
			if took := time.Since(start); took != tt.want || err == nil {
				t.Errorf("Serve = %v after %v, want an error after %v", err, took, tt.want)
			}
		})
	}
}

func TestL2M09ProgressOverRounds(t *testing.T) {
	p := newUpPeer(t)
	p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		n := len(p.requests("tools/call"))
		send := upStream(w)
		for _, v := range [][]int{{1, 5}, {1, 4, 6}}[n-1] {
			send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, v)
		}
		result := said("ok")
		if n == 1 {
			result = `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}`
		}
		send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	req := askedCall(`{"name":"t"}`)
	req.ProgressToken = json.RawMessage(`"p"`)
	x := &backtest.Caller{Ask: answers(willing)}
	if _, err := upBody(p.back(Options{}).Serve(t.Context(), req, x)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, note := range x.Heard() {
		_, params, _ := strings.Cut(note, " ")
		got = append(got, string(wire.Get([]byte(params), "progress")))
	}
	if strings.Join(got, " ") != "1 5 6" {
		t.Errorf("progress %q, want 1 5 6", got)
	}
}
