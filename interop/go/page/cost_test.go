package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	topics       = 50
	callsPerSec  = 100
	mostOverhead = 0.05 // of the CPU time of a delivery or call, in the full numbers
)

// A load is how much passes, and for how long it is measured, with and without somebody who
// looks, in turns.
type load struct {
	streams, deliveries int // deliveries per second
	turn                time.Duration
	turns               int
	most                float64
}

// What it costs mcpbridge that somebody looks: with PAGE_STREAMS streams (10,000 in make
// soak) and 2,000 deliveries per second at most a twentieth of a delivery or call. The short
// form shows that the page tells of many, and no more: its numbers are small.
func TestCostOfLooking(t *testing.T) {
	l := load{streams: int(rig.Int(t, "PAGE_STREAMS", 0)), deliveries: 2000, turn: 12 * time.Second, turns: 4, most: mostOverhead}
	if l.streams == 0 {
		l = load{streams: 300, deliveries: 200, turn: 3 * time.Second, turns: 1, most: 10}
	}
	w := newCrowd(t, l.streams)
	stop := w.drive(t, l)
	defer stop()
	var off, program, on usage
	for range l.turns {
		off.add(w.measure(t, l.turn))
		program.add(w.watched(t, l.turn))
		b := newBrowser(t)
		b.do(chromedp.Navigate(w.admin+"/#follows"), chromedp.WaitVisible(".follows svg"))
		on.add(w.measure(t, l.turn))
		b.sees(fmt.Sprint(topics), "follows")
		if n := eval[int](b, `document.querySelectorAll('.follows .node').length`); n < topics || n > 200 {
			t.Errorf("%d nodes are drawn for %d streams of %d topics", n, l.streams, topics)
		}
		b.picture("follows-many")
		b.do(chromedp.Navigate("about:blank"))
	}
	t.Logf("%d streams, %.0f deliveries and calls: %.1f µs of CPU each while nobody looks; %.1f µs while a program gets what the page gets: %+.1f %%; %.1f µs with the page in Chromium on this machine: %+.1f %%",
		l.streams, off.events, off.each()*1e6, program.each()*1e6, 100*(program.each()/off.each()-1), on.each()*1e6, 100*(on.each()/off.each()-1))
	if more := program.each()/off.each() - 1; more > l.most {
		t.Errorf("looking costs %.1f %% of a delivery or call, want at most %.0f %%", more*100, l.most*100)
	}
}

// A crowd is mcpbridge with many streams. Comments on all of them at the same time would be
// in one measurement, and not in another.
type crowd struct {
	server, base, admin string // http://…
	*process.Process
}

func newCrowd(t *testing.T, streams int) *crowd {
	t.Helper()
	listen, admin, at := rig.FreeAddr(t), rig.FreeAddr(t), rig.FreeAddr(t)
	server, err := process.Start("legacy-go", nil, programs.Server, "-http", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	if err := server.Ready(t.Context(), "http://"+at+"/admin/subscriptions", http.StatusOK); err != nil {
		t.Fatal(err)
	}
	w := &crowd{server: "http://" + at, base: "http://" + listen, admin: "http://" + admin}
	w.Process = programs.StartBridge(t, fmt.Sprintf(`
listen: %s
admin: %s
log: {level: warn}
remember: false
keep_alive: 10m
limits: {streams: 20000, streams_each: 20000, requests: 30000, requests_each: 30000}
servers:
  legacy: {url: "http://%s/mcp"}
`, listen, admin, at), admin)
	t.Cleanup(func() { _ = w.Stop(time.Minute) }) // it is not what is tested here
	var all sync.WaitGroup
	for i := range streams {
		conn := w.listen(t, listen, i)
		all.Go(func() { _, _ = io.Copy(io.Discard, conn) }) // ends with the connection
		t.Cleanup(func() { _ = conn.Close() })
	}
	rig.Until(t, 2*time.Minute, "the streams", func() string {
		if n := rig.Gauges(t, http.DefaultClient, admin)["mcpbridge_listen_streams"]; int(n) != streams {
			return fmt.Sprintf("%.0f are open", n)
		}
		return ""
	})
	return w
}

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"crowd","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// listen opens a stream.
func (w *crowd) listen(t *testing.T, addr string, i int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{%s,"notifications":{"resourceSubscriptions":["res://item/%02d"]}}}`, envelope, i%topics)
		_, err = fmt.Fprintf(conn, "POST /mcp/legacy HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
			"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s", addr, len(body), body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// drive has resources change and tools called, until stop is called.
func (w *crowd) drive(t *testing.T, l load) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	every := func(d time.Duration, do func(i int) error) {
		running.Go(func() { // ends with ctx
			tick := time.NewTicker(d)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				if err := do(i); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	each := max(1, l.streams/topics)
	every(time.Second*time.Duration(each)/time.Duration(l.deliveries), func(i int) error {
		return post(ctx, fmt.Sprintf("%s/admin/touch?uri=res://item/%02d", w.server, i%topics), "")
	})
	every(time.Second/callsPerSec, func(int) error {
		return post(ctx, w.base+"/mcp/legacy", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+envelope+`,"name":"text","arguments":{"size":100}}}`)
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func post(ctx context.Context, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "text"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status + " " + string(text))
	}
	return err
}

// A usage is what mcpbridge has used.
type usage struct {
	cpu    float64 // seconds
	events float64 // deliveries and calls
}

func (u *usage) add(v usage) { u.cpu, u.events = u.cpu+v.cpu, u.events+v.events }

func (u *usage) each() float64 { return u.cpu / u.events }

// measure returns what mcpbridge uses in a while, after a moment in which it settles.
func (w *crowd) measure(t *testing.T, d time.Duration) usage {
	t.Helper()
	time.Sleep(min(2*time.Second, d/3))
	before := w.used(t)
	time.Sleep(d)
	after := w.used(t)
	return usage{after.cpu - before.cpu, after.events - before.events}
}

// everyPoll is how often the page asks for rates, by every in servers.js and room.js.
const everyPoll = 4 * time.Second

// poll asks for the rates as the page does, of all servers and of the clients of one, until stop is
// called, which returns how often that was.
func (w *crowd) poll(t *testing.T) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	polls := make(chan int, 1)
	go func() { // ends with ctx
		tick := time.NewTicker(everyPoll)
		defer tick.Stop()
		for n := 0; ; {
			for _, path := range []string{"/api/rates", "/api/rates?server=legacy"} {
				body, err := fetched(ctx, w.admin+path)
				if err == nil && !strings.Contains(body, `"server":"legacy"`) {
					err = errors.New(path + " has no rates of legacy: " + body)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			n++
			select {
			case <-tick.C:
			case <-ctx.Done():
				polls <- n
				return
			}
		}
	}()
	return func() int {
		cancel()
		return <-polls
	}
}

func fetched(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// watched is measure while mcpbridge tail gets what the page gets, and the rates are asked for as the
// page asks. Chromium itself takes so much of a small machine that everything else on it is slower.
func (w *crowd) watched(t *testing.T, d time.Duration) usage {
	t.Helper()
	stop := w.poll(t)
	defer func() {
		if n := stop(); n < int(d/everyPoll) {
			t.Errorf("the rates were asked for %d times in %v", n, d)
		}
	}()
	p, err := process.Start("mcpbridge tail", nil, programs.Bridge, "tail", "--admin", strings.TrimPrefix(w.admin, "http://"), "--filter", "no line has this")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	return w.measure(t, d)
}

// used reads the CPU time of the process, in ticks of 10 ms, and what it has counted.
//
// Spec: proc(5), /proc/pid/stat.
func (w *crowd) used(t *testing.T) (u usage) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, i := range []int{11, 12} {
		ticks, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			t.Fatal(err)
		}
		u.cpu += ticks / 100
	}
	for name, n := range rig.Gauges(t, http.DefaultClient, strings.TrimPrefix(w.admin, "http://")) {
		if strings.HasPrefix(name, "mcpbridge_events_delivered_total") || strings.HasPrefix(name, "mcpbridge_requests_total") {
			u.events += n
		}
	}
	return u
}
