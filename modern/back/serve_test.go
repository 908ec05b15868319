package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestL2M10EnvelopeAndHeaders(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/call", said("ok"))
	b := p.back(Options{Options: upstream.Options{Headers: http.Header{"X-Config": {"yes"}, "Mcp-Name": {"forged"}, "mcp-param-x": {"forged"}, "Accept": {"*/*"}}}})
	req := upRequest("tools/call", `{ "name":"été","arguments":{"n":9007199254740993.0, "b" : [1,  2]},"task":{"ttl":1},"requestState":"x","vendor":{"a":1},"_meta":{"traceparent":"00-1","io.modelcontextprotocol/logLevel":"debug","progressToken":"tok"}}`)
	req.Capabilities = json.RawMessage(`{"roots":{"listChanged":true,"x":1},"tasks":{"list":{}},"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/a":{}}}`)
	req.Profile.Capabilities = req.Capabilities
	req.ProgressToken = json.RawMessage(`"tok"`)
	req.Extra = []byte(`"vendor":1`)
	body, err := upBody(b.Serve(t.Context(), req, &backtest.Caller{}))
	if err != nil || body != said("ok") {
		t.Fatalf("Serve = %s, %v, want the server's result", body, err)
	}
	got := p.requests("tools/call")[0]
	want := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"été","arguments":{"n":9007199254740993.0, "b" : [1,  2]},"vendor":{"a":1},` +
		`"_meta":{"traceparent":"00-1","progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"roots":{"x":1},"elicitation":{},"extensions":{"com.example/a":{}}},` +
		`"io.modelcontextprotocol/clientInfo":` + upClientInfo + `}},"vendor":1}`
	if got.body != want {
		t.Errorf("body\n%s\nwant\n%s", got.body, want)
	}
	if name := got.header["Mcp-Name"]; len(name) != 1 || name[0] != "=?base64?w6l0w6k=?=" {
		t.Errorf("Mcp-Name = %q, want it in base64, once", name)
	}
	if got.header.Get("X-Config") != "yes" || got.header.Get("Mcp-Param-X") != "" {
		t.Errorf("headers %v, want the config's own and nothing forged", got.header)
	}
}

func TestL2M10ClientInfo(t *testing.T) {
	for _, tt := range []struct {
		name, own, profile, want string
	}{
		{"the client's", upClientInfo, `{"name":"p"}`, upClientInfo},
		{"the profile's", "", `{"name":"p"}`, `{"name":"p"}`},
		{"the gateway's", "", "", upInfo},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.says("tools/list", `{"resultType":"complete","tools":[]}`)
			req := upRequest("tools/list", "")
			req.ClientInfo, req.Profile.ClientInfo = rawOf(tt.own), rawOf(tt.profile)
			if _, err := upBody(p.back(Options{}).Serve(t.Context(), req, &backtest.Caller{})); err != nil {
				t.Fatal(err)
			}
			meta := wire.Get([]byte(p.requests("tools/list")[0].params), "_meta")
			if got := string(wire.Get(meta, spec.MetaClientInfo)); got != tt.want {
				t.Errorf("clientInfo = %s, want %s", got, tt.want)
			}
		})
	}
}

func rawOf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

func TestNewBackRefuses(t *testing.T) {
	good := Options{Options: upstream.Options{Name: "files", URL: "https://files.example/mcp", ClientInfo: json.RawMessage(upInfo)}}
	if b, err := New(good); err != nil || b.Close(t.Context()) != nil {
		t.Fatalf("New = %v", err)
	}
	for name, spoil := range map[string]func(o *Options){
		"no Name":         func(o *Options) { o.Name = "" },
		"URL and Dial":    func(o *Options) { o.URL = "" },
		"exactly one":     func(o *Options) { o.Dial = func(context.Context) (transport.Conn, error) { return nil, nil } },
		"ClientInfo":      func(o *Options) { o.ClientInfo = nil },
		"time-out":        func(o *Options) { o.Settings.Timeouts.Request = -1 },
		"limit":           func(o *Options) { o.MaxMessage = -1 },
		"Subresources":    func(o *Options) { o.Settings.Subresources = "some" },
		"not an absolute": func(o *Options) { o.URL = "ftp://secret@files.example" },
	} {
		o := good
		spoil(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("New without %s = %v, want an error that says so", name, err)
		}
	}
}

func TestL2M10NoTasks(t *testing.T) {
	b := newUpPeer(t).back(Options{}) // a request that arrives fails for want of a script
	for _, method := range []string{"tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "ping", "logging/setLevel", "resources/subscribe", "initialize"} {
		_, err := b.Serve(t.Context(), upRequest(method, `{}`), &backtest.Caller{})
		var refusal *mcp.Refusal
		if e := wireErr(t, err); e.Code != spec.CodeMethodNotFound || !errors.As(err, &refusal) {
			t.Errorf("Serve(%s) = %v, want -32601 without troubling the server", method, err)
		}
	}
}

func TestL2M12LogLevelRidesOnRequests(t *testing.T) {
	for _, tt := range []struct {
		name      string
		session   spec.LogLevel
		want      string
		wantNotes int
	}{
		{"none set", "", "", 0},
		{"warning", "warning", `"warning"`, 1},
		{"info", "info", `"info"`, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				send := upStream(w)
				for _, level := range []string{"debug", "info", "error"} {
					send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"data":1}}`, level)
				}
				send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, said("ok"))
			}
			req := upRequest("tools/call", `{"name":"t"}`)
			req.LogLevel = tt.session
			x := &backtest.Caller{}
			if _, err := upBody(p.back(Options{}).Serve(t.Context(), req, x)); err != nil {
				t.Fatal(err)
			}
			meta := wire.Get([]byte(p.requests("tools/call")[0].params), "_meta")
			if got := string(wire.Get(meta, spec.MetaLogLevel)); got != tt.want {
				t.Errorf("logLevel = %q, want %q", got, tt.want)
			}
			if notes := x.Heard(); len(notes) != tt.wantNotes {
				t.Errorf("heard %q, want %d messages", notes, tt.wantNotes)
			}
		})
	}
}

func TestM2L11ProgressOfAModernServer(t *testing.T) {
	p := newUpPeer(t)
	p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		send := upStream(w)
		token := string(wire.Get(wire.Get(m.Params, "_meta"), "progressToken"))
		for _, v := range []string{"1", "3", "3", "2", "3.5"} {
			send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s,"message":"m"}}`, token, v)
		}
		send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":999,"progress":9}}`)
		send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":9}}`)
		send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, said("ok"))
	}
	drops, met := &backtest.Metrics{}, quirks.New(quirks.Options{})
	b := p.back(Options{Options: upstream.Options{Metrics: drops, Quirks: met}})
	req := upRequest("tools/call", `{"name":"t","_meta":{"progressToken":0}}`)
	req.ProgressToken = json.RawMessage(`0`)
	x := &backtest.Caller{}
	if _, err := upBody(b.Serve(t.Context(), req, x)); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, v := range []string{"1", "3", "3.5"} {
		want = append(want, fmt.Sprintf(`notifications/progress {"progressToken":0,"progress":%s,"message":"m"}`, v))
	}
	if got := x.Heard(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("heard %q, want %q", got, want)
	}
	if n := drops.Count("foreign progress"); n != 2 {
		t.Errorf("dropped %d foreign messages, want 2", n)
	}
	if got, want := met.Meetings(), []quirks.Meeting{{Quirk: quirks.ProgressOrder, Count: 2}}; !slices.Equal(got, want) {
		t.Errorf("met %v, want %v: one that stays and one that goes back", got, want)
	}
}

func TestL2M09ResultTypes(t *testing.T) {
	for _, tt := range []struct {
		name, result string
		era          spec.Era
		ok           bool
	}{
		{"complete", said("x"), spec.Legacy, true},
		{"absent means complete", `{"content":[]}`, spec.Legacy, true},
		{"unknown", `{"resultType":"task","taskId":"1"}`, spec.Legacy, false},
		{"no string", `{"resultType":7}`, spec.Legacy, false},
		{"unknown, to a client that may know", `{"resultType":"task","taskId":"1"}`, spec.Modern, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.says("tools/call", tt.result)
			req := upRequest("tools/call", `{"name":"t"}`)
			req.Era = tt.era
			if tt.era == spec.Modern {
				req = upModernRequest("tools/call", `{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)
			}
			body, err := upBody(p.back(Options{}).Serve(t.Context(), req, &backtest.Caller{}))
			if tt.ok && (err != nil || body != tt.result) {
				t.Errorf("Serve = %s, %v, want %s", body, err, tt.result)
			}
			if e := mcp.WireError(err); !tt.ok && (err == nil || e.Code != spec.CodeInternal || !strings.Contains(e.Message, "a result of type")) {
				t.Errorf("Serve = %s, %v, want an error that speaks of the type", body, err)
			}
		})
	}
}

func TestL2M09Errors(t *testing.T) {
	for _, tt := range []struct {
		name        string
		method      string
		status      int
		code        int64
		data        string
		wantCode    int64
		wantData    string
		wantRefusal bool
		era         spec.Era
	}{
		{"unknown resource, the old way", "resources/read", 200, -32002, `{"x":1}`, -32602, `{"x":1,"uri":"file:///a"}`, false, spec.Modern},
		{"the same for a legacy client", "resources/read", 200, -32002, `{"x":1}`, -32002, `{"x":1}`, false, spec.Legacy},
		{"unknown resource", "resources/read", 400, -32602, `{"uri":"file:///a"}`, -32602, `{"uri":"file:///a"}`, false, spec.Legacy},
		{"missing capability", "tools/call", 400, -32021, `{"requiredCapabilities":{"sampling":{}}}`, -32021, `{"requiredCapabilities":{"sampling":{}}}`, true, spec.Legacy},
		{"the gateway's headers", "prompts/get", 400, -32020, "", -32603, "", false, spec.Legacy},
		{"a revision nobody speaks here", "tools/call", 400, -32022, `{"supported":["2099-01-01"]}`, -32603, "", false, spec.Legacy},
		{"the handler's own", "tools/call", 200, -1, `7`, -1, `7`, false, spec.Legacy},
		{"an error with 500", "tools/call", 500, -32603, "", -32603, "", false, spec.Legacy},
		{"no such method of an extension", "vendor/x", 404, -32601, "", -32601, "", true, spec.Legacy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.on[tt.method] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				upFail(w, tt.status, m.ID, tt.code, tt.data)
			}
			params := `{"name":"t","uri":"file:///a"}`
			req := upRequest(tt.method, params)
			if tt.era == spec.Modern {
				req = upModernRequest(tt.method, `{"uri":"file:///a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)
			}
			_, err := p.back(Options{}).Serve(t.Context(), req, &backtest.Caller{})
			e := wireErr(t, err)
			if e.Code != tt.wantCode || string(e.Data) != tt.wantData {
				t.Errorf("error %d %s (%s), want %d %s", e.Code, e.Data, e.Message, tt.wantCode, tt.wantData)
			}
			var refusal *mcp.Refusal
			if errors.As(err, &refusal) != tt.wantRefusal {
				t.Errorf("a refusal: %v, want %v", !tt.wantRefusal, tt.wantRefusal)
			}
			if tt.wantCode == -32603 && tt.code != -32603 && !strings.Contains(e.Message, `"scripted"`) {
				t.Errorf("message %q does not name the server", e.Message)
			}
		})
	}
}

func TestL2M11Renegotiates(t *testing.T) {
	p := newUpPeer(t)
	p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if len(p.requests("tools/call")) == 1 {
			upFail(w, 400, m.ID, -32022, `{"supported":["2025-11-25","2026-07-28"],"requested":"2026-07-28"}`)
			return
		}
		upAnswer(w, m.ID, said("ok"))
	}
	body, err := upBody(p.back(Options{}).Serve(t.Context(), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{}))
	if err != nil || body != said("ok") {
		t.Errorf("Serve = %s, %v, want the second answer", body, err)
	}
	got := p.requests("tools/call")
	if len(got) != 2 || got[0].id == got[1].id {
		t.Errorf("the server saw %d requests, want 2 with ids of their own", len(got))
	}
}

func TestL2M11RefusedForGood(t *testing.T) {
	p := newUpPeer(t)
	p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		upFail(w, 400, m.ID, -32022, `{"supported":["2026-07-28"]}`)
	}
	_, err := p.back(Options{}).Serve(t.Context(), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{})
	if e := wireErr(t, err); e.Code != spec.CodeInternal || len(p.requests("tools/call")) != 2 {
		t.Errorf("error %v after %d requests, want one repetition", e, len(p.requests("tools/call")))
	}
}

// TestRepeats proves that nothing runs twice: only what reads is sent again, once.
func TestRepeats(t *testing.T) {
	breakOff := func(w http.ResponseWriter) {
		panic(http.ErrAbortHandler) // the connection is cut
	}
	endEarly := func(w http.ResponseWriter) { upStream(w)(`{"jsonrpc":"2.0","method":"notifications/x"}`) }
	for _, tt := range []struct {
		name, method string
		how          func(w http.ResponseWriter)
		times        int // of failing
		want         int // requests
		ok           bool
	}{
		{"a call", "tools/call", breakOff, 1, 1, false},
		{"a call whose stream ends", "tools/call", endEarly, 1, 1, false},
		{"a read", "resources/read", breakOff, 1, 2, true},
		{"a list whose stream ends", "tools/list", endEarly, 1, 2, true},
		{"a read that always fails", "resources/read", breakOff, 9, 2, false},
		{"a prompt", "prompts/get", endEarly, 1, 2, true},
		{"a refusal", "tools/list", func(w http.ResponseWriter) { http.Error(w, "no", http.StatusTooManyRequests) }, 1, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.on[tt.method] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				if len(p.requests(tt.method)) <= tt.times {
					tt.how(w)
					return
				}
				upAnswer(w, m.ID, said("ok"))
			}
			_, err := upBody(p.back(Options{}).Serve(t.Context(), upRequest(tt.method, `{"name":"t","uri":"u:"}`), &backtest.Caller{}))
			if (err == nil) != tt.ok || len(p.requests(tt.method)) != tt.want {
				t.Errorf("Serve = %v after %d requests, want %d and ok = %v", err, len(p.requests(tt.method)), tt.want, tt.ok)
			}
			if tt.method == "tools/call" && !strings.Contains(wireErr(t, err).Message, "may have taken effect") {
				t.Errorf("error %v does not say that the call may have run", err)
			}
		})
	}
}

func TestUnreachableServer(t *testing.T) {
	p := newUpPeer(t)
	b := p.back(Options{})
	p.Close()
	_, err := b.Serve(t.Context(), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{})
	e := wireErr(t, err)
	if e.Code != spec.CodeInternal || !strings.Contains(e.Message, `"scripted" can't be reached`) || strings.Contains(e.Message, "http://") {
		t.Errorf("error %v, want one that names the server, its cause and no URL", e)
	}
	if b.Err() == nil {
		t.Error("Err() = nil, want why the server is away")
	}
}

// TestBreaker proves that a server which takes long to take no connection does not
// hold up everybody who asks, and is found again.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		var dials atomic.Int32
		b, end := bubbleBack(t, Options{}, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			upAnswer(w, m.ID, said("ok"))
		})
		defer end()
		tr := b.opts.RoundTripper.(*http.Transport)
		dial := tr.DialContext
		tr.DisableKeepAlives = true
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			if !away.Load() {
				return dial(ctx, network, addr)
			}
			time.Sleep(10 * time.Second)
			return nil, &net.OpError{Op: "dial", Err: errors.New("i/o timeout")}
		}
		serve := func(wantErr bool, wantTook time.Duration, wantDials int32) {
			t.Helper()
			start, before := time.Now(), dials.Load()
			_, err := upBody(b.Serve(t.Context(), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{}))
			if took := time.Since(start); (err != nil) != wantErr || took != wantTook || dials.Load()-before != wantDials {
				t.Errorf("Serve = %v after %v and %d dials, want an error: %v, %v and %d", err, took, dials.Load()-before, wantErr, wantTook, wantDials)
			}
		}
		serve(false, 0, 1)
		away.Store(true)
		serve(true, 10*time.Second, 1)
		serve(true, 0, 0)
		time.Sleep(6 * time.Second)
		serve(true, 10*time.Second, 1)
		away.Store(false)
		time.Sleep(6 * time.Second)
		serve(false, 0, 1)
		serve(false, 0, 1)
	})
}

func TestRejectionsTellWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, m wire.Message)
		want   string // in the error
	}{
		{"an error under another status", func(w http.ResponseWriter, m wire.Message) { upFail(w, 404, m.ID, 7, "") }, "no 7"},
		{"401 with an error of the server's", func(w http.ResponseWriter, m wire.Message) { upFail(w, 401, m.ID, -32001, "") }, "credentials"},
		{"a redirect", func(w http.ResponseWriter, _ wire.Message) {
			w.Header().Set("Location", "http://192.0.2.1/")
			w.WriteHeader(307)
		}, "redirects are not followed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { tt.answer(w, m) }
			_, err := upBody(p.back(Options{}).Serve(t.Context(), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{}))
			if e := wireErr(t, err); !strings.Contains(e.Message, tt.want) {
				t.Errorf("error %v, want %s in it", e, tt.want)
			}
		})
	}
}

// What can't be read and what is not of the era is skipped on a call's stream.
func TestF07OthersAreSkippedOnAStream(t *testing.T) {
	p := newUpPeer(t)
	p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		send := upStream(w)
		send(`{"jsonrpc":"2.0","method":`)
		send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`)
		send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, said("ok"))
	}
	drops := &backtest.Metrics{}
	body, err := upBody(p.back(Options{Options: upstream.Options{Metrics: drops}}).Serve(t.Context(), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{}))
	if err != nil || body != said("ok") || drops.Count("unreadable") != 1 || drops.Count("foreign message") != 1 {
		t.Errorf("Serve = %s, %v with drops %v, want the result, and two messages skipped", body, err, &drops.Counts)
	}
}

func TestL2M15CancelClosesTheResponse(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		t.Run(fmt.Sprintf("streaming=%v", streaming), func(t *testing.T) {
			p := newUpPeer(t)
			arrived, closed := make(chan struct{}), make(chan struct{})
			p.on["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
				if streaming {
					upStream(w)(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`)
				}
				close(arrived)
				<-r.Context().Done()
				close(closed)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("the client cancelled the request")
			done := upServe(ctx, p.back(Options{}), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{})
			<-arrived
			cancel(why)
			if out := <-done; out.err != why {
				t.Errorf("Serve = %v, want what the log is to say: %v", out.err, why)
			}
			<-closed // the test's time-out tells if the response stays open
			if n := len(p.requests("notifications/cancelled")); n != 0 {
				t.Errorf("the server got %d notifications/cancelled over HTTP, want none", n)
			}
		})
	}
}

func TestM2L14ModernServerTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bridgetest.Listen()
		cancelled := make(chan time.Duration, 4)
		start := time.Now()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body)
			m, _ := wire.Parse(data, wire.Options{})
			send := upStream(w)
			if name, _ := wire.GetString(m.Params, "name"); name == "busy" {
				for i := 1; r.Context().Err() == nil; i++ {
					send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, i)
					select {
					case <-r.Context().Done():
					case <-time.After(40 * time.Second):
					}
				}
			}
			<-r.Context().Done()
			cancelled <- time.Since(start)
		})}
		go srv.Serve(l) // ends with Close
		defer srv.Close()
		tr := l.Transport()
		defer tr.CloseIdleConnections()
		b, err := New(Options{Options: upstream.Options{Name: "scripted", URL: "http://127.0.0.1", RoundTripper: tr, ClientInfo: json.RawMessage(upInfo),
			Settings: settings.Server{Timeouts: settings.Timeouts{Request: time.Minute, Max: 5 * time.Minute}}}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close(context.Background())
		for _, tt := range []struct {
			tool string
			want time.Duration
		}{{"idle", time.Minute}, {"busy", 5 * time.Minute}} {
			start = time.Now()
			req := upRequest("tools/call", fmt.Sprintf(`{"name":%q}`, tt.tool))
			req.ProgressToken = json.RawMessage(`1`)
			_, err := b.Serve(t.Context(), req, &backtest.Caller{})
			if took := time.Since(start); took != tt.want || !strings.Contains(wireErr(t, err).Message, "in time") {
				t.Errorf("%s: %v after %v, want a time-out after %v", tt.tool, err, took, tt.want)
			}
			if at := <-cancelled; at != tt.want {
				t.Errorf("%s: the server's response was closed after %v, want %v", tt.tool, at, tt.want)
			}
		}
	})
}

func TestS01ModernClient(t *testing.T) {
	p := newUpPeer(t)
	const asks = `{"resultType":"input_required","inputRequests":{"q":{"method":"roots/list"}},"requestState":"S","content":null}`
	p.says("tools/call", asks)
	b := p.back(Options{})
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{"listChanged":true},"x":1},"io.modelcontextprotocol/logLevel":"error","progressToken":%s,"vendor/a":[1, 2]}`
	params := `{"name":"t","inputResponses":{"q":{"roots":[]}},"requestState":"R","task":{"ttl":1},` + fmt.Sprintf(meta, `"p"`) + `}`
	x := &backtest.Caller{}
	res, err := b.Serve(t.Context(), upModernRequest("tools/call", params), x)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Release()
	if string(res.Body) != asks || res.Era != spec.Modern || len(x.Asked()) != 0 {
		t.Errorf("result %s of era %v after %d rounds, want the server's own, nobody asked", res.Body, res.Era, len(x.Asked()))
	}
	want := `{"name":"t","inputResponses":{"q":{"roots":[]}},"requestState":"R","task":{"ttl":1},` + fmt.Sprintf(meta, "1") + `}`
	if got := p.requests("tools/call")[0].params; got != want {
		t.Errorf("params\n%s\nwant\n%s", got, want)
	}
}
