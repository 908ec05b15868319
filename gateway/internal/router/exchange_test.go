package router

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestF07IDsAndNumbersPassExactly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.answer("tools/call", `{"content":[],"structuredContent":{"n":9007199254740993,"f":1.0e0}}`)
	for _, id := range []string{`1`, `"1"`, `9007199254740993`, `0`, `""`, `"a\u0062"`} {
		got := r.call(t, id, "tools/call", "a", `"name":"a","arguments":{"big":12345678901234567890,"f":1.50},"x-new":{"k":null}`)
		if !strings.HasPrefix(got.body, `{"jsonrpc":"2.0","id":`+id+`,"result":`) || !strings.Contains(got.body, `{"n":9007199254740993,"f":1.0e0}`) {
			t.Errorf("id %s: %s", id, got.body)
		}
	}
	for _, msg := range r.peer.sent("tools/call") {
		if !strings.Contains(msg, `"arguments":{"big":12345678901234567890,"f":1.50},"x-new":{"k":null}`) {
			t.Errorf("server got %s, want arguments and unknown members as they were sent", msg)
		}
	}
}

func TestF06NotificationsGet202(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	hold := make(chan struct{})
	r.peer.hold["tools/call"] = hold
	r.peer.answer("tools/call", `{"content":[]}`)
	done := make(chan answer)
	go func() { done <- r.call(t, "1", "tools/call", "a", `"name":"a"`) }()
	for len(r.peer.sent("tools/call")) == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,` + envelope + `}}`,
		`{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{` + envelope + `}}`,
	} {
		h := modernHeaders("", "")
		h.Del("Mcp-Method")
		if got := r.send(t, http.MethodPost, body, h); got.status != 202 || got.body != "" {
			t.Errorf("%s: %d %q, want 202 and nothing", body, got.status, got.body)
		}
	}
	close(hold)
	if got := <-done; got.status != 200 || !strings.Contains(got.body, `"result"`) {
		t.Errorf("the call after notifications/cancelled: %d %s, want its result", got.status, got.body)
	}
}

func TestF09ClosingTheResponseCancels(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.hold["tools/call"] = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/mcp/peer", strings.NewReader(modernBody("1", "tools/call", `"name":"a"`)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = modernHeaders("tools/call", "a")
	go func() {
		for len(r.peer.sent("tools/call")) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if res, err := r.Client().Do(req); err == nil {
		res.Body.Close()
		t.Fatalf("the call was answered with %d", res.StatusCode)
	}
	r.eventually(t, "the server is told that the request is cancelled", func() bool { return len(r.peer.sent("notifications/cancelled")) > 0 })
}

func TestF10FormOfTheAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.KeepAlive = 20 * time.Millisecond })
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":TOKEN,"progress":1}}`
	withToken := strings.Replace(envelope, `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",` + withToken + `}}`
	r.peer.before["tools/call"] = []string{progress}
	r.peer.answer("tools/call", `{"content":[]}`)
	r.call(t, "1", "tools/list", "", "") // opens the session, which may take longer than a keep-alive

	t.Run("F-10 a stream once something goes first", func(t *testing.T) {
		got := r.send(t, http.MethodPost, body, modernHeaders("tools/call", "a"))
		if typ := got.header.Get("Content-Type"); got.status != 200 || typ != "text/event-stream" || got.header.Get("X-Accel-Buffering") != "no" {
			t.Fatalf("%d %v", got.status, got.header)
		}
		for _, line := range strings.Split(got.body, "\n") {
			if strings.HasPrefix(line, "id:") || strings.HasPrefix(line, "retry:") {
				t.Errorf("stream has %q", line)
			}
		}
		first, last := strings.Index(got.body, `"progressToken":"p","progress":1`), strings.Index(got.body, `"id":1,"result"`)
		if first < 0 || last < first || strings.Count(got.body, "event: message\n") != 2 {
			t.Errorf("body = %s", got.body)
		}
	})
	t.Run("F-10 an error after that travels on the stream", func(t *testing.T) {
		r.peer.answer("tools/call", `{"code":-32602,"message":"late"}`)
		got := r.send(t, http.MethodPost, body, modernHeaders("tools/call", "a"))
		if got.status != 200 || !strings.Contains(got.body, `data: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"late"}}`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	t.Run("F-08 JSON alone goes without progress", func(t *testing.T) {
		r.peer.answer("tools/call", `{"content":[]}`)
		h := modernHeaders("tools/call", "a")
		h.Set("Accept", "application/json")
		got := r.send(t, http.MethodPost, body, h)
		if got.header.Get("Content-Type") != "application/json" || !strings.HasPrefix(got.body, `{"jsonrpc":"2.0","id":1,"result"`) {
			t.Errorf("%v %s", got.header, got.body)
		}
	})
	t.Run("F-08 a stream alone gets a stream", func(t *testing.T) {
		h := modernHeaders("tools/list", "")
		h.Set("Accept", "text/event-stream")
		got := r.send(t, http.MethodPost, modernBody("1", "tools/list", ""), h)
		if got.header.Get("Content-Type") != "text/event-stream" || !strings.Contains(got.body, `data: {"jsonrpc":"2.0","id":1,"result"`) {
			t.Errorf("%v %s", got.header, got.body)
		}
	})
	t.Run("F-10 a slow call is kept alive", func(t *testing.T) {
		hold := make(chan struct{})
		r.peer.mu.Lock()
		r.peer.hold["prompts/list"] = hold
		r.peer.mu.Unlock()
		res := r.open(t, http.MethodPost, modernBody("1", "prompts/list", ""), modernHeaders("prompts/list", ""))
		defer res.Body.Close()
		two := make([]byte, 6)
		if _, err := io.ReadFull(res.Body, two); err != nil || string(two) != ":\n\n:\n\n" {
			t.Fatalf("first bytes = %q, %v, want two comments", two, err)
		}
		close(hold)
		rest, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(rest), `"id":1,"result"`) {
			t.Errorf("rest = %s, %v", rest, err)
		}
	})
}

func TestF04UpstreamMethodNotFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.capabilities = `{"tools":{}}`
	for _, tt := range []struct {
		method string
		status int
	}{
		{"tools/list", 200}, // declared: the handler's own error
		{"prompts/list", 404},
		{"x/unheard-of", 404},
	} {
		r.peer.answer(tt.method, `{"code":-32601,"message":"Method not found"}`)
		if got := r.call(t, `"q"`, tt.method, "", ""); got.status != tt.status || got.code() != -32601 || !strings.Contains(got.body, `"id":"q"`) {
			t.Errorf("%s: %d %s, want %d and -32601", tt.method, got.status, got.body, tt.status)
		}
	}
}

func TestF05NoRequestsReachTheClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.before["tools/call"] = []string{
		`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}`,
		`{"jsonrpc":"2.0","id":3,"method":"ping"}`,
	}
	r.peer.answer("tools/call", `{"content":[]}`)
	got := r.call(t, "1", "tools/call", "a", `"name":"a"`)
	if strings.Contains(got.body, `"method"`) || !strings.Contains(got.body, `"id":1,"result"`) {
		t.Errorf("client got %s, want the result alone", got.body)
	}
	if got.header.Get("Mcp-Session-Id") != "" {
		t.Error("a session id reached the client")
	}
}

func TestF03DiscoverNamesWhatIsServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	got := string(r.call(t, `"d"`, "server/discover", "", "").result(t))
	want := `{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":` + everyCapability + `,"instructions":"be kind","resultType":"complete","ttlMs":0,"cacheScope":"private",` + serverInfo + `}`
	if got != want {
		t.Errorf("discover = %s\nwant       %s", got, want)
	}
}
