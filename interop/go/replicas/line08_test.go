package replicas

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLine08Rolling restarts the replicas one after the other under calls: no modern call
// fails, and no session on a modern server is lost.
func TestLine08Rolling(t *testing.T) {
	perSecond, sessions := size(100, 200), size(20, 200)
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		beside(t)
		w := newWorld(t, setup{engine: engine, config: "drain_delay: 3s\ndrain: 10s"})
		w.balancer.follow(t)
		door := &replica{w: w, name: "the balancer", listen: strings.TrimPrefix(w.balancer.base, "http://")}
		var lasting []*lasting
		for i := range sessions {
			lasting = append(lasting, w.last(t, door, w.modern.item(i%20)))
		}
		calls := w.pour(t, perSecond)
		for _, r := range w.replicas {
			begun := time.Now()
			r.stop(time.Minute)
			stopped := time.Since(begun)
			r.start()
			w.wantMembers(w.replicas...)
			t.Logf("%s was stopped in %v and started again in %v", r.name, stopped.Round(time.Millisecond), (time.Since(begun) - stopped).Round(time.Millisecond))
			time.Sleep(500 * time.Millisecond)
		}
		t.Logf("%d calls", calls())
		moved := 0
		for _, s := range lasting {
			moved += s.end(t)
		}
		t.Logf("%d sessions, whose streams were opened anew %d times", len(lasting), moved)
	})
}

// pour makes so many modern calls a second through the balancer, half of them of each
// server, until the returned function is called, which returns how many there were. None
// may fail.
func (w *world) pour(t *testing.T, perSecond int) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var calls atomic.Int64
	var running sync.WaitGroup
	running.Go(func() { // ends with ctx
		for tick := time.NewTicker(time.Second / time.Duration(perSecond)); ; {
			select {
			case <-tick.C:
				n := calls.Add(1)
				running.Go(func() { // ends with the call
					begun := time.Now()
					server := []string{"legacy", "modern"}[n%2]
					if a := w.mark(context.Background(), w.balancer.url(server), fmt.Sprint("poured ", n)); a.problem() != "" {
						t.Errorf("call %d of %s, begun at %s: %s", n, server, clock(begun.UnixNano()), a.problem())
					}
				})
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	})
	over := sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(over)
	return func() int64 {
		over()
		return calls.Load()
	}
}

// A lasting session has to outlive the replica that holds it.
type lasting struct {
	*session
	uri   string
	door  *replica // the balancer
	stop  context.CancelFunc
	done  sync.WaitGroup
	moved int // how often its stream was opened anew
	heard atomic.Int64
}

// last opens a session through the balancer, which calls now and then, and follows a
// resource: whenever its stream ends it opens another.
func (w *world) last(t *testing.T, door *replica, uri string) *lasting {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &lasting{session: w.mustOpen(door, "modern", nil), uri: uri, door: door, stop: stop}
	t.Cleanup(stop)
	if a := l.subscribe(ctx, door, uri); a.problem() != "" {
		t.Fatal(a.problem())
	}
	l.done.Go(func() { l.call(ctx, t) })   // ends with stop
	l.done.Go(func() { l.follow(ctx, t) }) // ends with stop
	return l
}

func (l *lasting) call(ctx context.Context, t *testing.T) {
	for n := 0; ctx.Err() == nil; n++ {
		begun := time.Now()
		a := l.mark(context.Background(), l.door, fmt.Sprint("lasting ", n))
		if a.problem() != "" {
			t.Errorf("a call of a session, begun at %s: %s", clock(begun.UnixNano()), a.problem())
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (l *lasting) follow(ctx context.Context, t *testing.T) {
	last := ""
	for ; ctx.Err() == nil; l.moved++ {
		events, err := l.session.follow(l.door, last)
		if err != nil && strings.Contains(err.Error(), fmt.Sprint(http.StatusConflict)) {
			time.Sleep(50 * time.Millisecond) // its former stream is about to end
			continue
		}
		if err != nil {
			t.Errorf("opening the stream of a session at %s: %v", clock(time.Now().UnixNano()), err)
			return
		}
		select {
		case <-events.done:
		case <-ctx.Done():
			events.close()
		}
		for _, e := range events.all() {
			last = e.id
		}
		l.heard.Add(int64(len(events.with(l.uri))))
		time.Sleep(50 * time.Millisecond)
	}
}

// end wants the session to be there, and to hear of changes, and ends it. It returns how
// often its stream was opened anew.
func (l *lasting) end(t *testing.T) int {
	t.Helper()
	l.stop()
	l.done.Wait()
	events, err := l.session.follow(l.door, "")
	for late := time.Now().Add(recovery); err != nil && strings.Contains(err.Error(), fmt.Sprint(http.StatusConflict)) && time.Now().Before(late); {
		time.Sleep(50 * time.Millisecond) // its former stream is about to end
		events, err = l.session.follow(l.door, "")
	}
	if err != nil {
		t.Errorf("the stream of a session that was handed over: %v", err)
		return l.moved
	}
	defer events.close()
	l.w.modern.touch(l.uri)
	if _, err := events.find(recovery, l.uri); err != nil {
		t.Errorf("a session that was handed over does not hear of a change: %v", err)
	}
	if status := l.session.end(t.Context(), l.door); status < 200 || status > 299 {
		t.Errorf("DELETE = %d", status)
	}
	return l.moved
}
