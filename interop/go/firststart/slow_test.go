package firststart

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// adds is what mcpbridge may add to the time that a client takes to its first answer.
const adds = time.Second

// tries is how often a time is taken before it is believed to be too long: what else
// the machine does only makes times longer, and the shortest counts.
const tries = 3

// TestU02SlowStart takes each client to a server that is slow to start, directly and
// through wrap and serve, side by side: it is served whenever it would be directly,
// not more than a second later, by as many processes as it would start itself.
//
// A client that refuses the server is held against one that doesn't.
func TestU02SlowStart(t *testing.T) {
	t.Parallel() // with the other one that waits
	columns := []int{0, 6}
	if all() {
		columns = []int{0, 6, 20, 40}
	}
	for _, seconds := range columns {
		t.Run(fmt.Sprintf("%ds", seconds), func(t *testing.T) {
			for _, k := range sdks {
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					takeTimes(t, k, seconds)
				})
			}
		})
	}
}

func takeTimes(t *testing.T, k *sdk, seconds int) {
	var best *outcome
	for range tries {
		best = sideBySide(t, k, seconds).best(best)
		if t.Failed() || best.late() == "" {
			break
		}
	}
	t.Logf("%s, server-memory after %d s: directly %.2f s, wrap %.2f s, serve %.2f s", k.name, seconds,
		best.direct.took.Seconds(), best.wrap.took.Seconds(), best.serve.took.Seconds())
	if why := best.late(); why != "" {
		t.Errorf("%s, server-memory after %d s: %s, in the best of %d tries", k.name, seconds, why, tries)
	}
}

// A passage is one client's way to the server and what came of it.
type passage struct {
	name   string
	at     *stand
	client *client
	to     remote.Target
	began  time.Time // of the time that is taken; zero means as the client connects

	took    time.Duration
	started int
	err     error
}

// An outcome is the three ways of one client.
type outcome struct {
	sleep               time.Duration
	direct, wrap, serve passage
}

// sideBySide takes a client the three ways at once: what else the machine does slows
// them all.
func sideBySide(t *testing.T, k *sdk, seconds int) *outcome {
	t.Helper()
	sleep := time.Duration(seconds) * time.Second
	release := takeTurn(sleep)
	defer release()
	o := &outcome{sleep: sleep}
	argv, revision := k.argv, legacyRevision
	if k.directly != nil {
		argv = k.directly
	}
	o.direct = passage{name: "directly", at: slowMemory(t, seconds), client: start(t, k, argv, revision)}
	o.direct.to = o.direct.at.direct()
	o.wrap = passage{name: "wrap", at: slowMemory(t, seconds), client: start(t, k, k.argv, k.speaks(sleep))}
	o.wrap.to = o.wrap.at.wrap()
	o.serve = passage{name: "serve", at: slowMemory(t, seconds), client: start(t, k, k.argv, k.speaks(sleep))}
	v := o.serve.at.serve()
	o.serve.to, o.serve.began = v.to, v.began
	ctx, cancel := context.WithTimeout(t.Context(), 2*sleep+3*time.Minute) // from here on: turns may be long in coming
	defer cancel()
	o.run(ctx, t)
	v.stop(t)
	for _, p := range []*passage{&o.direct, &o.wrap, &o.serve} {
		p.started = p.at.started()
	}
	o.judge(t, k, v.Log())
	return o
}

// takeTurn waits for the machine to have time for a start. What it returns is called
// when the work is done; a sleeping command gives others their turn after its start.
func takeTurn(sleep time.Duration) (release func()) {
	turn <- struct{}{}
	if sleep == 0 {
		return func() { <-turn }
	}
	time.AfterFunc(1200*time.Millisecond, func() { <-turn })
	return func() {}
}

// slowMemory is server-memory behind the script that sleeps.
func slowMemory(t *testing.T, seconds int) *stand {
	return newStand(t, func(starts, dir string) []string {
		return append([]string{fill("{interop}/odd/slow"), starts, strconv.Itoa(seconds)}, fromMatrix(t, "memory", dir).command()...)
	})
}

// run waits for the three.
func (o *outcome) run(ctx context.Context, t *testing.T) {
	done := make(chan struct{}, 3)
	for _, p := range []*passage{&o.direct, &o.wrap, &o.serve} {
		s := fromMatrix(t, "memory", p.at.dir)
		go func() { // ends with ctx at the latest
			p.run(ctx, s)
			done <- struct{}{}
		}()
	}
	for range cap(done) {
		<-done
	}
}

func (p *passage) run(ctx context.Context, s *server) {
	ahead := time.Duration(0)
	if !p.began.IsZero() {
		ahead = time.Since(p.began)
	}
	p.took, p.err = p.client.visit(ctx, p.to, s)
	p.took += ahead
}

// judge reports all but the times. log is what mcpbridge serve wrote.
func (o *outcome) judge(t *testing.T, k *sdk, log string) {
	t.Helper()
	what := fmt.Sprintf("%s, server-memory after %v", k.name, o.sleep)
	if o.direct.err != nil {
		t.Fatalf("%s, directly: %v; it wrote:\n%s", what, o.direct.err, o.direct.client.Log())
	}
	if o.wrap.err != nil {
		t.Errorf("%s, wrap: %v (directly it is served in %.1f s); client and mcpbridge wrote:\n%s", what, o.wrap.err, o.direct.took.Seconds(), o.wrap.client.Log())
	}
	if o.serve.err != nil {
		t.Errorf("%s, serve: %v (directly it is served in %.1f s); mcpbridge wrote:\n%s\nthe client wrote:\n%s", what, o.serve.err, o.direct.took.Seconds(), log, o.serve.client.Log())
	}
	// Under wrap a client starts what it starts directly; under serve none does.
	if o.wrap.started != o.direct.started {
		t.Errorf("%s, wrap: the command was started %d times, want %d as directly; client and mcpbridge wrote:\n%s", what, o.wrap.started, o.direct.started, o.wrap.client.Log())
	}
	if o.serve.started != 1 {
		t.Errorf("%s, serve: the command was started %d times, want once; mcpbridge wrote:\n%s", what, o.serve.started, log)
	}
}

// best has the shorter of the times of two tries. other may be nil.
func (o *outcome) best(other *outcome) *outcome {
	if other != nil {
		o.direct.took = min(o.direct.took, other.direct.took)
		o.wrap.took = min(o.wrap.took, other.wrap.took)
		o.serve.took = min(o.serve.took, other.serve.took)
	}
	return o
}

// late says what took too long. A client that starts the command twice waits twice,
// which under serve it does not.
func (o *outcome) late() string {
	most := o.direct.took + adds
	if o.wrap.took > most {
		return fmt.Sprintf("wrap: served after %.2f s, want at most %.2f s, a second more than directly", o.wrap.took.Seconds(), most.Seconds())
	}
	most -= time.Duration(o.direct.started-1) * o.sleep
	if o.serve.took > most {
		return fmt.Sprintf("serve: served after %.2f s, want at most %.2f s, a second more than directly", o.serve.took.Seconds(), most.Seconds())
	}
	return ""
}
