package back

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Messages keep a request of an unknown method alive, whatever timeouts.max says; without
// one it ends at timeouts.request. Those of a known method end as ever.
func TestT30MessagesStartTheClockAnew(t *testing.T) {
	limits := settings.Timeouts{Request: time.Second, Max: 3 * time.Second}
	for _, c := range []struct {
		name, method, note string
		beats              int // that it lives to see
	}{
		{"unknown notifications", methodWatch, notifyHit, 20},
		{"progress that nobody asked for", methodWatch, spec.NotifyProgress, 20},
		{"a known method", spec.MethodToolsCall, notifyHit, 1},
	} {
		bridgetest.RunBubble(t, "T-30 "+c.name, func(t *testing.T) {
			b, peers := upLines(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: limits}}})
			defer b.Close(t.Context())
			got := upServe(t.Context(), b, upModernRequest(c.method, `{"name":"x"}`), &backtest.Caller{})
			p := <-peers
			defer p.Conn.Close()
			m := p.Want(c.method)
			began := time.Now()
			for range 20 {
				time.Sleep(900 * time.Millisecond)
				synctest.Wait()
				if len(got) > 0 {
					break
				}
				p.Write("%s", moderntest.Tagged(c.note, fmt.Sprintf(`"progressToken":%s,`, m.ID), m.ID.String()))
			}
			p.Want(spec.NotifyCancelled)
			want := time.Duration(c.beats)*900*time.Millisecond + time.Second
			if c.method == spec.MethodToolsCall {
				want = time.Second // nothing prolongs it
			}
			if took := time.Since(began); took > want+900*time.Millisecond || took < want {
				t.Errorf("cancelled after %v, want %v", took, want)
			}
			if o := <-got; o.err == nil || !strings.Contains(o.err.Error(), "timeouts.request") {
				t.Errorf("Serve() = %v, want an error that names timeouts.request", o.err)
			}
		})
	}
}

// The same over HTTP.
func TestT30MessagesStartTheClockAnewOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newMemoryPeer(t)
		p.on[methodWatch] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			event := upStream(w)
			for range 40 {
				time.Sleep(50 * time.Millisecond)
				event("%s", moderntest.Tagged(spec.NotifyMessage, `"level":"debug",`, m.ID.String())) // nobody asked for it
			}
			event("%s", ended(m.ID.String(), m.ID.String()))
		}
		b := p.back(Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: 1500 * time.Millisecond, Max: 1600 * time.Millisecond}}}})
		params := `{` + strings.Replace(moderntest.ClientMeta, "CAPS", "{}", 1) + `}`
		if _, err := upBody(b.Serve(t.Context(), upModernRequest(methodWatch, params), &backtest.Caller{})); err != nil {
			t.Errorf("Serve() = %v, want its result after 2 s", err)
		}
	})
}

// A client that is slow, and holds up nobody, slows the server down: every message
// arrives once, in order, and few wait.
func TestT30ASlowClientSlowsTheServerDown(t *testing.T) {
	for _, size := range []int{10, maxStreamBytes / 8} {
		t.Run(fmt.Sprintf("T-30 messages of %d bytes", size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testSlowClient(t, size) })
		})
	}
}

func testSlowClient(t *testing.T, size int) {
	messages := min(3*maxStreamNotes, 30*maxStreamBytes/size)
	b, peers := upLines(t, Options{})
	defer b.Close(t.Context())
	hold, told := make(chan struct{}), make(chan string, messages)
	x := &slowCaller{hold: hold, told: told}
	got := upServe(t.Context(), b, upModernRequest(methodWatch, `{}`), x)
	p := <-peers
	defer p.Conn.Close()
	m := p.Want(methodWatch)
	written := make(chan int, messages)
	go func() { // ends when the caller has taken them all
		for n := range messages {
			p.Write("%s", moderntest.Tagged(notifyHit, fmt.Sprintf(`"n":%d,"pad":"%s",`, n, strings.Repeat("x", size)), m.ID.String()))
			written <- n
		}
		p.Result(m.ID, `{"resultType":"complete"}`)
	}()
	time.Sleep(2 * maxStalled)
	if n, most := len(written), min(maxStreamNotes, maxStreamBytes/size)+100; n > most {
		t.Errorf("%d were read while nobody took one, want at most %d", n, most)
	}
	close(hold)
	for n := range messages {
		if got, want := <-told, fmt.Sprintf(`"n":%d,`, n); !strings.Contains(got, want) {
			t.Fatalf("told %.40s, want %s", got, want)
		}
	}
	if o := <-got; o.err != nil {
		t.Errorf("Serve() = %v, want a result", o.err)
	}
}

// A slowCaller takes nothing until hold is closed.
type slowCaller struct {
	backtest.Caller
	hold <-chan struct{}
	told chan<- string
}

func (c *slowCaller) Notify(_ context.Context, n mcp.Notification) error {
	<-c.hold
	c.told <- string(n.Params)
	return nil
}

// Where others wait, a client that takes its messages slower than the server sends them
// is waited for, but not one that hardly takes any.
func TestT30OthersWaitForASlowClientButNotLong(t *testing.T) {
	for _, c := range []struct {
		name string
		pace time.Duration
		ends bool
	}{
		{"slow", 5 * time.Millisecond, false},
		{"hardly any", 50 * time.Millisecond, true},
	} {
		bridgetest.RunBubble(t, "T-30 "+c.name, func(t *testing.T) {
			o, took := serveShared(t, c.pace)
			if ended := o.err != nil && strings.Contains(o.err.Error(), "send the request again"); ended != c.ends {
				t.Errorf("Serve() = %v after %d messages, ended for being slow = %v, want %v", o.err, took, ended, c.ends)
			}
		})
	}
}

// serveShared runs a request of which many messages come, beside another that waits.
func serveShared(t *testing.T, pace time.Duration) (outcome, int) {
	b, peers := upLines(t, Options{})
	defer b.Close(t.Context())
	x := &pacedCaller{pace: pace}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_ = upServe(ctx, b, upModernRequest(spec.MethodToolsCall, `{"name":"x"}`), &backtest.Caller{})
	p := <-peers
	defer p.Conn.Close()
	p.Want(spec.MethodToolsCall)
	got := upServe(ctx, b, upModernRequest(methodWatch, `{}`), x)
	m := p.Want(methodWatch)
	go func() { // ends with what it writes
		for range 2 * maxStreamNotes {
			p.Write("%s", moderntest.Tagged(notifyHit, ``, m.ID.String()))
		}
		p.Result(m.ID, `{"resultType":"complete"}`)
	}()
	go func() { _, _ = p.Conn.Read() }() // the cancellation, if any
	o := <-got
	synctest.Wait()
	return o, x.taken
}

// A pacedCaller takes its time over each message.
type pacedCaller struct {
	backtest.Caller
	pace  time.Duration
	taken int
}

func (c *pacedCaller) Notify(context.Context, mcp.Notification) error {
	time.Sleep(c.pace)
	c.taken++
	return nil
}

// What a client takes over a message is not taken from the server's time.
func TestT30ASlowClientCostsTheServerNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := upLines(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: time.Second, Max: time.Second}}}})
		defer b.Close(t.Context())
		got := upServe(t.Context(), b, upModernRequest(methodWatch, `{}`), &pacedCaller{pace: 5 * time.Second})
		p := <-peers
		defer p.Conn.Close()
		m := p.Want(methodWatch)
		p.Write("%s", moderntest.Tagged(notifyHit, ``, m.ID.String()))
		time.Sleep(5500 * time.Millisecond)
		p.Result(m.ID, `{"resultType":"complete"}`)
		if o := <-got; o.err != nil {
			t.Errorf("Serve() = %v, want a result", o.err)
		}
	})
}

// A server that sends without a pause can't keep a cancellation from it.
func TestT30CancellationOvertakesMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := upLines(t, Options{})
		defer b.Close(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		got := upServe(ctx, b, upModernRequest(methodWatch, `{}`), &pacedCaller{pace: time.Millisecond})
		p := <-peers
		m := p.Want(methodWatch)
		stopped := make(chan struct{})
		go func() { // ends with the connection
			defer close(stopped)
			for p.Conn.Write([]byte(moderntest.Tagged(notifyHit, ``, m.ID.String()))) == nil {
			}
		}()
		time.Sleep(time.Second)
		cancel()
		told := time.Now()
		if c := p.Want(spec.NotifyCancelled); string(wire.Get(c.Params, "requestId")) != m.ID.String() || time.Since(told) > 10*time.Millisecond {
			t.Errorf("cancelled %s after %v, want %s at once", c.Params, time.Since(told), m.ID)
		}
		if o := <-got; !errors.Is(o.err, context.Canceled) {
			t.Errorf("Serve() = %v, want %v", o.err, context.Canceled)
		}
		_ = p.Conn.Close()
		<-stopped
	})
}
