package firststart

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// places bounds how many rows are under way: they compute more than they wait.
var places = make(chan struct{}, 4)

// A rider is a client that comes to an odd server again and again.
type rider struct {
	*sdk
	often bool // it is quick
	pairs bool // on a pipe, it starts a command twice each time
}

var riders = []rider{{sdk: go161, often: true}, {sdk: go180, often: true}, {sdk: typescript1}, {sdk: typescriptPinned, pairs: true}}

// visits is how many clients come in a row.
func (r *rider) visits(o *odd) int {
	switch {
	case !r.often || o.heavy() && !all():
		return 2
	case o.heavy():
		return 10
	case all():
		return 50
	}
	return 5
}

// TestU01Odd has clients of both eras served by odd servers, many in a row, and
// counts the processes that it takes. Only one that can't serve is started again,
// and only once: that is remembered.
func TestU01Odd(t *testing.T) {
	for _, o := range odds {
		for _, r := range riders {
			if o.heavy() && !r.often && !all() {
				continue
			}
			row := func(name string, run func(*testing.T, *odd, *rider)) {
				t.Run(o.name+"/"+r.name+"/"+name, func(t *testing.T) {
					t.Parallel()
					places <- struct{}{}
					defer func() { <-places }()
					run(t, o, &r)
				})
			}
			row("wrap", wrapped)
			row("serve", served)
		}
	}
}

// wrapped has an mcpbridge wrap for each visit.
func wrapped(t *testing.T, o *odd, r *rider) {
	at, s := o.stand(t)
	c := start(t, r.sdk, r.argv, r.revision)
	for i := range r.visits(o) {
		before := at.started()
		what := fmt.Sprintf("%s, %s, wrap, client %d", o.name, r.name, i+1)
		come(t, what, c, at.wrap(), s)
		want := 1
		if i == 0 {
			want = o.first(r.modern())
		}
		if r.pairs {
			want++ // the second process of a pair finds remembered what the first one learnt
		}
		got := at.started() - before
		if r.pairs && i > 0 && got == want-1 {
			continue // the first of the pair was answered as it was remembered, and ended before it had to start anything
		}
		if got != want {
			t.Errorf("%s: the command was started %d times, want %d; client and mcpbridge wrote:\n%s", what, got, want, c.Log())
		}
		if t.Failed() {
			return
		}
	}
	quiet(t, o, c.Log())
}

// come is a visit on a pipe.
func come(t *testing.T, what string, c *client, to remote.Target, s *server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := c.visit(ctx, to, s); err != nil {
		t.Errorf("%s: %v; client and mcpbridge wrote:\n%s", what, err, c.Log())
	}
}

// quiet sees that what a command writes because it was asked is not shown to people.
func quiet(t *testing.T, o *odd, log string) {
	t.Helper()
	if (o.name == "noise" || o.name == "python-1") && (strings.Contains(log, "ValidationError") || strings.Contains(log, "validation errors for")) {
		t.Errorf("%s: mcpbridge shows what the command wrote while it was only asked:\n%s", o.name, log)
	}
}

// served has one mcpbridge serve for all visits, and then another one that remembers
// for a last visit.
func served(t *testing.T, o *odd, r *rider) {
	at, s := o.stand(t)
	c := start(t, r.sdk, r.argv, r.revision)
	n := r.visits(o)
	// serve asks as a modern client does. A session of a legacy client has a process
	// of its own with a legacy server; all else shares one.
	want := o.first(true)
	if !r.modern() && !o.modern {
		want += n - 1
	}
	serveAll(t, o, at, c, r, s, n, want)
	if !t.Failed() {
		serveAll(t, o, at, c, r, s, 1, 1)
	}
}

func serveAll(t *testing.T, o *odd, at *stand, c *client, r *rider, s *server, n, want int) {
	t.Helper()
	before := at.started()
	v := at.serve()
	for i := range n {
		what := fmt.Sprintf("%s, %s, serve, client %d of %d", o.name, r.name, i+1, n)
		call(t, what, c, v, s)
		if t.Failed() {
			break
		}
	}
	v.stop(t)
	if got := at.started() - before; got != want && !t.Failed() {
		t.Errorf("%s, %s, serve: %d clients had the command started %d times, want %d; mcpbridge wrote:\n%s", o.name, r.name, n, got, want, v.Log())
	}
	quiet(t, o, v.Log())
}

// call is a visit over HTTP.
func call(t *testing.T, what string, c *client, v *serving, s *server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := c.visit(ctx, v.to, s); err != nil {
		t.Errorf("%s: %v; mcpbridge wrote:\n%s\nthe client wrote:\n%s", what, err, v.Log(), c.Log())
	}
}

// TestU01Alone has clients of both eras come to one mcpbridge serve in turns, with a
// server of which only one process may run. Each gets a process that no other one
// stands in the way of: to mcpbridge they are one client, which has left the last session.
func TestU01Alone(t *testing.T) {
	for _, o := range odds {
		if !o.alone {
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			at, s := o.stand(t)
			turns := []*client{start(t, go161, go161.argv, legacyRevision), start(t, go180, go180.argv, modernRevision)}
			n := 6
			if all() {
				n = 50
			}
			v := at.serve()
			for i := range n {
				what := fmt.Sprintf("%s, serve, client %d of %d, in turns of both eras", o.name, i+1, n)
				call(t, what, turns[i%2], v, s)
				if t.Failed() {
					break
				}
			}
			v.stop(t)
			most := n
			if !o.modern {
				most++ // what the modern client has there ends for nobody before one start has failed
			}
			if got := at.started(); !t.Failed() && got > most {
				t.Errorf("%s, serve: %d clients in turns of both eras had the command started %d times, want %d at most; mcpbridge wrote:\n%s", o.name, n, got, most, v.Log())
			}
		})
	}
}
