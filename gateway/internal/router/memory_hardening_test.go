package router

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// A client that announces a large body and sends none of it would have the gateway
// hold room for all of it (CWE-770, CWE-789).
func TestAnnouncedBodyTakesNoRoom(t *testing.T) {
	const clients, announced = 40, 4 << 20
	r := newRig(t, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range clients {
		c, err := net.Dial("tcp", r.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		fmt.Fprintf(c, "POST /mcp/peer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", announced)
		// It is said when the body begins to be read.
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatalf("answer = %q, %v, want 100 Continue", line, err)
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > clients*announced/8 {
		t.Errorf("%d announcements of %d bytes took %d bytes, want next to nothing", clients, announced, got)
	}
}

// What is kept of a message, or repeated to others, has a length: an id of a megabyte
// would be written with each event of its stream (CWE-770).
func TestLongPartsAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	legacy := func(id, method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	}
	listen := modernBody("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["note://%s"]}`)
	for _, tt := range []struct{ limit, method, name, body string }{
		{"id", "tools/call", "a", modernBody(`"`+long+`"`, "tools/call", `"name":"a"`)},
		{"method", long, "", modernBody("1", long, "")},
		{"progress_token", "tools/call", "a", strings.Replace(modernBody("1", "tools/call", `"name":"a"`), `"_meta":{`, `"_meta":{"progressToken":"`+long+`",`, 1)},
		{"client_info", "tools/call", "a", strings.Replace(modernBody("1", "tools/call", `"name":"a"`), `"name":"c"`, `"name":"`+long+`"`, 1)},
		{"capabilities", "tools/call", "a", askableBody("1", "tools/call", `{"experimental":{"`+long+`":{}}}`, `"name":"a"`)},
		{"uri", "resources/read", "note://" + long, modernBody("1", "resources/read", `"uri":"note://`+long+`"`)},
		{"uri", "subscriptions/listen", "", fmt.Sprintf(listen, long)},
		{"filter", "subscriptions/listen", "", fmt.Sprintf(listen, strings.Repeat(`a","note://`, 40))},
		{"client_info", "", "", legacy("1", "initialize", `{"protocolVersion":"2025-11-25","clientInfo":{"name":"`+long+`"}}`)},
		{"capabilities", "", "", legacy("1", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"x":"`+long+`"}}`)},
	} {
		t.Run(tt.limit+" "+tt.method[:min(len(tt.method), 20)], func(t *testing.T) {
			counts := &tally{}
			r := newRig(t, func(o *Options) {
				o.Metrics = counts
				o.Limits = limits.Set{"id": 250, "progress_token": 250, "method": 250, "uri": 250, "filter": 400, "client_info": 250, "capabilities": 250}
			})
			header, status := modernHeaders(tt.method, tt.name), http.StatusBadRequest
			if tt.method == "" {
				header, status = legacyHeaders(""), http.StatusOK
			}
			got := r.send(t, http.MethodPost, tt.body, header)
			l := r.connect(t)
			l.send(tt.body)
			for way, body := range map[string]string{"HTTP": got.body, "a pipe": l.next()} {
				if !strings.Contains(body, `"code":-32602`) || !strings.Contains(body, "raise limits."+tt.limit+`"`) || strings.Contains(body, long) {
					t.Errorf("over %s: %.400s, want an error that names limits.%s and repeats nothing", way, body, tt.limit)
				}
			}
			if got.status != status {
				t.Errorf("status = %d, want %d", got.status, status)
			}
			if n := counts.limits(tt.limit); n != 2 || !strings.Contains(r.logs.String(), "a part is too long") {
				t.Errorf("%d hits, want 2 and a log line", n)
			}
			if n := len(r.peer.sent(tt.method)); tt.method != "" && n != 0 {
				t.Errorf("%d such requests reached the server, want none", n)
			}
		})
	}
}

// A message of a batch is held to the same lengths as one by itself.
func TestLongPartsInABatchAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.bound("id", 100) })
	session := r.send(t, http.MethodPost, strings.Replace(hello, "2025-11-25", "2025-03-26", 1), legacyHeaders("")).header.Get("Mcp-Session-Id")
	long := strings.Repeat("x", 101)
	got := r.send(t, http.MethodPost, `[{"jsonrpc":"2.0","id":"`+long+`","method":"tools/list"},{"jsonrpc":"2.0","id":7,"method":"ping"}]`, legacyHeaders(session))
	if !strings.Contains(got.body, "limits.id") || strings.Contains(got.body, long) || !strings.Contains(got.body, `"id":7,"result"`) {
		t.Errorf("batch = %d %s, want an error for the first and a result for the second", got.status, got.body)
	}
}

// Requests that hang would be taken without end (CWE-770); there is room again once some
// have ended, and for others than who has used up theirs.
func TestRequestsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"requests", "requests_each"} {
		t.Run(limit, func(t *testing.T) {
			limits := &tally{}
			r := newRig(t, func(o *Options) {
				o.Metrics = limits
				o.bound("requests", 2)
				o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get("X-User")), nil })
				if limit == "requests_each" {
					o.bound("requests", 100)
					o.bound("requests_each", 2)
				}
			})
			hold := make(chan struct{})
			r.peer.hold["tools/call"] = hold
			r.peer.answer("tools/call", `{"content":[]}`)
			r.peer.answer("tools/list", `{"tools":[]}`)
			done := make(chan answer, 2)
			for range 2 {
				go func() { done <- r.call(t, "1", "tools/call", "a", `"name":"a"`) }()
			}
			r.eventually(t, "in flight", func() bool { return len(r.peer.sent("tools/call")) == 2 })
			got := r.call(t, "3", "tools/list", "", "")
			if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "raise limits."+limit+`"`) || limits.limits(limit) != 1 {
				t.Errorf("one more = %d %v %s, want 503 with Retry-After that names limits.%s", got.status, got.header, got.body, limit)
			}
			if limit == "requests_each" {
				other := modernHeaders("tools/list", "")
				other.Set("X-User", "bob")
				if got := r.send(t, http.MethodPost, modernBody("4", "tools/list", ""), other); got.status != http.StatusOK {
					t.Errorf("another's = %d %s, want its answer", got.status, got.body)
				}
			}
			close(hold)
			for range 2 {
				if got := <-done; got.status != http.StatusOK {
					t.Errorf("one of the first = %d %s, want its answer", got.status, got.body)
				}
			}
			r.eventually(t, "room again", func() bool { return r.call(t, "5", "tools/list", "", "").status == http.StatusOK })
		})
	}
}

// Whoever invents capabilities would have the server open a session for each, which is a
// process where it is a command (CWE-770).
func TestM2L07InventedCapabilitiesShareASession(t *testing.T) {
	t.Parallel()
	for _, crosses := range []bool{false, true} {
		t.Run(fmt.Sprint("experimental ", crosses), func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Servers[0].Settings.Experimental = crosses })
			r.peer.answer("tools/call", `{"content":[]}`)
			const clients = 8
			for n := range clients {
				capabilities := fmt.Sprintf(`{"elicitation":{"form":{"x":%d}},"invented":{"n":%d},"experimental":{"x%d":{}}}`, n, n, n)
				if got := r.tool(t, "1", capabilities, ""); got.status != http.StatusOK {
					t.Fatalf("call = %d %s", got.status, got.body)
				}
			}
			opened := r.peer.sent("initialize")
			want, declared := 1, `"capabilities":{"elicitation":{"form":{}}}`
			if crosses {
				want, declared = clients, `"capabilities":{"elicitation":{"form":{}},"experimental":{"x0":{}}}`
			}
			if len(opened) != want || !strings.Contains(opened[0], declared) {
				t.Errorf("%d sessions, the first by %s\nwant %d by %s", len(opened), opened[0], want, declared)
			}
		})
	}
}

// Calls that hang would hold the memory of their messages without bound (CWE-770). New
// ones are refused when there is none left; those that were taken go on, and other
// principals are served.
func TestMemoryOfMessagesIsBounded(t *testing.T) {
	t.Parallel()
	limits := &tally{}
	r := newRig(t, func(o *Options) {
		o.Metrics = limits
		o.bound("memory", 16<<20)
		o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get("X-User")), nil })
	})
	hold := make(chan struct{})
	r.peer.hold["tools/call"] = hold
	r.peer.answer("tools/call", `{"content":[]}`)
	r.peer.answer("tools/list", `{"tools":[]}`)
	body := modernBody("1", "tools/call", `"name":"a","arguments":{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
	const calls = 20
	statuses := make(chan answer, calls)
	for range calls {
		go func() { statuses <- r.send(t, http.MethodPost, body, modernHeaders("tools/call", "a")) }()
	}
	taken, refused := 0, 0
	r.eventually(t, "all taken or refused", func() bool {
		taken, refused = len(r.peer.sent("tools/call")), limits.limits("memory")
		return taken+refused == calls
	})
	if taken == 0 || taken > 4 { // half of it, at 2 MiB each
		t.Errorf("%d calls of 1 MiB were taken with 16 MiB for all, want some, and at most 4", taken)
	}
	other := modernHeaders("tools/list", "")
	other.Set("X-User", "ada")
	if got := r.send(t, http.MethodPost, modernBody("4", "tools/list", ""), other); got.status != http.StatusOK {
		t.Errorf("another's call = %d %s, want its answer", got.status, got.body)
	}
	close(hold)
	for range calls {
		switch got := <-statuses; got.status {
		case http.StatusOK:
			taken--
		case http.StatusServiceUnavailable:
			refused--
			if got.header.Get("Retry-After") == "" || got.code() != -32603 || !strings.Contains(got.body, "limits.memory") {
				t.Errorf("refusal = %v %s, want Retry-After and an error that names limits.memory", got.header, got.body)
			}
		}
	}
	if taken != 0 || refused != 0 {
		t.Errorf("%d of those taken and %d of those refused had another answer", taken, refused)
	}
	r.eventually(t, "all given back", func() bool { return r.g.budget.Used() <= 256<<10 })
}

// Requests in flight, and the memory of messages, are counted by address as sessions are
// while everybody is anonymous.
func TestRequestsAndMemoryAreByAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.bound("requests_each", 1)
		o.bound("memory", 1<<20)
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}
	})
	hold := make(chan struct{})
	r.peer.hold["tools/call"] = hold
	r.peer.answer("tools/call", `{"content":[]}`)
	r.peer.answer("tools/list", `{"tools":[]}`)
	bad, again, good := r.from(t, "127.0.0.2", ""), r.from(t, "127.0.0.2", ""), r.from(t, "127.0.0.3", "")
	done := make(chan answer, 1)
	go func() {
		done <- bad(http.MethodPost, modernBody("1", "tools/call", `"name":"a"`), modernHeaders("tools/call", "a"))
	}()
	r.eventually(t, "in flight", func() bool { return len(r.peer.sent("tools/call")) == 1 })
	list, header := modernBody("2", "tools/list", ""), modernHeaders("tools/list", "")
	if got := again(http.MethodPost, list, header); got.status != http.StatusServiceUnavailable {
		t.Errorf("a second of one address = %d %s, want 503", got.status, got.body)
	}
	if got := good(http.MethodPost, list, header); got.status != http.StatusOK {
		t.Errorf("one of another address = %d %s, want its answer", got.status, got.body)
	}
	for forwarded, want := range map[string]int{"127.0.0.2": http.StatusServiceUnavailable, "203.0.113.9": http.StatusOK} {
		if got := r.from(t, "127.0.0.9", forwarded)(http.MethodPost, list, header); got.status != want {
			t.Errorf("one that a proxy forwards for %s = %d %s, want %d", forwarded, got.status, got.body, want)
		}
	}
	close(hold)
	if got := <-done; got.status != http.StatusOK {
		t.Errorf("the first = %d %s, want its answer", got.status, got.body)
	}
	at := func(addr string) *budget.Account {
		return r.g.budget.Account(r.g.now().proxies.ShareOf(&http.Request{RemoteAddr: addr}, mcp.Anonymous))
	}
	if a, b, c := at("127.0.0.2:1"), at("127.0.0.2:2"), at("127.0.0.3:1"); a != b || a == c {
		t.Error("accounts of memory are not by address")
	}
}

// endless opens a WebSocket from an address, and sends size bytes of a message that has no
// end. It reports how the gateway closed it; 0 if it has not.
func (r *rig) endless(t *testing.T, addr string, size int) (code int, reason string, end func()) {
	d := websocket.Dialer{NetDialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}).DialContext, WriteBufferSize: 64 << 10}
	ws, resp, err := d.DialContext(t.Context(), r.socketURL(), nil)
	if err != nil {
		if resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("opening a WebSocket: %v", err)
		}
		return http.StatusServiceUnavailable, "", func() {}
	}
	closed := make(chan *websocket.CloseError, 1)
	read := make(chan struct{})
	go func() { // ends with the connection
		defer close(read)
		_, _, err := ws.ReadMessage()
		var c *websocket.CloseError
		if errors.As(err, &c) {
			closed <- c
		}
	}()
	w, err := ws.NextWriter(websocket.TextMessage)
	for chunk := make([]byte, 32<<10); err == nil && size > 0; size -= len(chunk) {
		if len(closed) > 0 {
			break
		}
		_, err = w.Write(chunk)
	}
	end = func() { _ = ws.Close(); <-read }
	select {
	case c := <-closed:
		return c.Code, c.Text, end
	case <-time.After(200 * time.Millisecond): // the bytes have left, and were read
		return 0, "", end
	}
}

// WebSockets whose messages never end would hold all that was sent, as no limit counted it
// (CWE-770): 200 of 10 addresses, 1 MiB each; in full 1,040 of 20, 3 MiB each.
func TestUnfinishedMessagesAreInTheMemory(t *testing.T) {
	addresses, each, size := bridgetest.Numbers(10, 20), bridgetest.Numbers(20, 52), bridgetest.Numbers(1<<20, 3<<20)
	limit, beyond := int64(bridgetest.Numbers(16<<20, 64<<20)), int64(bridgetest.Numbers(32<<20, 64<<20))
	limits := &tally{}
	r := newRig(t, func(o *Options) { o.Metrics = limits; o.bound("memory", int(limit)); o.bound("body", 4<<20) })
	r.peer.answer("tools/list", `{"tools":[]}`)
	good := r.from(t, "127.0.0.99", "")
	latency := func() time.Duration {
		var took []time.Duration
		for range 100 {
			begin := time.Now()
			if got := good(http.MethodPost, modernBody("2", "tools/list", ""), modernHeaders("tools/list", "")); got.status != http.StatusOK {
				t.Fatalf("a good client's call = %d %s", got.status, got.body)
			}
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		return took[len(took)-2]
	}
	var before, held runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	quick := latency()
	var ends []func()
	var wg sync.WaitGroup
	var mu sync.Mutex // guards refused and ends
	refused := 0
	for a := range addresses {
		wg.Go(func() {
			for range each {
				code, reason, end := r.endless(t, fmt.Sprintf("127.0.1.%d", a+1), size)
				mu.Lock()
				ends = append(ends, end)
				if code == transport.CloseTryLater {
					refused++
					if reason != "the memory for clients' messages is used up; connect again in 1 second" {
						t.Errorf("closed because %q", reason)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	runtime.GC()
	runtime.ReadMemStats(&held)
	if got := int64(held.HeapInuse) - int64(before.HeapInuse); got > limit+beyond {
		t.Errorf("they hold %d MiB, want at most %d beyond the limit of %d", got>>20, beyond>>20, limit>>20)
	}
	if refused == 0 || limits.limits("memory") < refused {
		t.Errorf("%d were refused, %d counted, want some", refused, limits.limits("memory"))
	}
	t.Logf("%d of %d refused; p99 of a good client %v before, %v now", refused, addresses*each, quick, latency())
	for _, end := range ends {
		end()
	}
	r.eventually(t, "all given back", func() bool { return r.g.budget.Used() <= 4<<20 })
}
