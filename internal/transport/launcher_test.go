package transport

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A fakeChild is the far end of a process in memory.
type fakeChild struct {
	Conn
	peer Conn
	end  time.Duration // that Close takes
}

func (c *fakeChild) Close() error {
	time.Sleep(c.end)
	return c.Conn.Close()
}

// A nursery starts fake children.
type nursery struct {
	*Launcher
	started []*fakeChild
	end     time.Duration
	err     error
}

func newNursery(ask func(context.Context, *Process) error) *nursery {
	n := &nursery{}
	n.Launcher = NewLauncher(func() (Conn, error) {
		if n.err != nil {
			return nil, n.err
		}
		near, far := NewPipe()
		c := &fakeChild{near, far, n.end}
		n.started = append(n.started, c)
		return c, nil
	}, ask)
	return n
}

func (n *nursery) dial(t *testing.T) *Process {
	t.Helper()
	p, err := n.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The process that was probed also serves.
func TestU02KeptProcessServes(t *testing.T) {
	n := newNursery(nil)
	defer n.Close()
	p := n.dial(t)
	b := p.Borrow()
	answer := make(chan string)
	go func() {
		msg, err := b.Read()
		if err != nil {
			msg = []byte(err.Error())
		}
		answer <- string(msg)
	}()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-answer; got != ErrClosed.Error() {
		t.Errorf("a borrower that has left reads %q, want that it is closed", got)
	}
	if err := b.Write([]byte("{}")); err != ErrClosed {
		t.Errorf("a borrower that has left writes: %v, want ErrClosed", err)
	}
	n.Keep(p)
	if !n.HasKept() {
		t.Fatal("the process was not kept")
	}
	if err := n.started[0].peer.Write([]byte(`{"late":true}`)); err != nil {
		t.Fatal(err)
	}
	again := n.dial(t)
	if again != p || len(n.started) != 1 {
		t.Errorf("%d processes started, want the one that was asked", len(n.started))
	}
	if msg, err := again.Read(); err != nil || string(msg) != `{"late":true}` {
		t.Errorf("Read = %s, %v, want the message that arrived meanwhile", msg, err)
	}
	if err := again.Close(); err != nil || n.Alive() != 0 {
		t.Errorf("Close = %v, %d alive", err, n.Alive())
	}
}

// A borrower that adopts the process continues to read, and closes the process.
func TestBorrowedIsAdopted(t *testing.T) {
	n := newNursery(nil)
	defer n.Close()
	b := n.dial(t).Borrow()
	for _, want := range []string{"1", "2"} {
		if err := n.started[0].peer.Write([]byte(want)); err != nil {
			t.Fatal(err)
		}
		if msg, err := b.Read(); err != nil || string(msg) != want {
			t.Errorf("Read = %s, %v, want %s", msg, err, want)
		}
		b.Adopt()
	}
	if err := b.Close(); err != nil || n.Alive() != 0 {
		t.Errorf("Close = %v with %d alive, want the process ended", err, n.Alive())
	}
}

// No process is started while another is ending, and one Dial starts only one.
func TestU02StartsWaitForEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNursery(nil)
		defer n.Close()
		p := n.dial(t)
		n.started[0].end = 3 * time.Second
		go func() { _ = p.Close() }()
		synctest.Wait()
		begun := time.Now()
		next := n.dial(t)
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("dialled after %v, want the end of the other awaited", took)
		}
		if next.Disturbed() || next.Beside() != 0 {
			t.Errorf("disturbed %v, beside %d others, want neither", next.Disturbed(), next.Beside())
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n.started[1].end = 2 * time.Second
		go func() { _ = next.Close() }()
		synctest.Wait()
		if _, err := n.Dial(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial = %v, want its context's end", err)
		}
		time.Sleep(2 * time.Second)
	})
}

// One of several clients does not wait for the processes of others that have left, unless the
// command locks.
func TestU02StartsBesideTheEndsOfOthers(t *testing.T) {
	for _, tt := range []struct {
		name           string
		adopted, locks bool
		took           time.Duration
	}{
		{"of a session", true, false, 0},
		{"of a session, locks", true, true, 3 * time.Second},
		{"of no session", false, false, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNursery(nil)
				defer n.Close()
				n.SetLocks(tt.locks)
				other := n.dial(t)
				if tt.adopted {
					other.Borrow().Adopt()
				}
				n.started[0].end = 3 * time.Second
				go func() { _ = other.Close() }()
				synctest.Wait()
				begun := time.Now()
				p, err := n.DialBeside(t.Context())
				if took := time.Since(begun); err != nil || took != tt.took {
					t.Errorf("dialled after %v, %v, want %v", took, err, tt.took)
				}
				if p.Disturbed() != (tt.took == 0) {
					t.Errorf("disturbed: %v", p.Disturbed())
				}
				time.Sleep(3 * time.Second)
				_ = p.Close()
			})
		})
	}
}

func TestU02DisturbedAtTheStart(t *testing.T) {
	n := newNursery(nil)
	defer n.Close()
	a, b := n.dial(t), n.dial(t)
	if a.Beside() != 1 || b.Disturbed() {
		t.Errorf("beside %d, disturbed %v", a.Beside(), b.Disturbed())
	}
	_ = a.Close()
	if !b.Disturbed() || b.Beside() != 0 {
		t.Errorf("after the other's end: disturbed %v, beside %d, want true, 0", b.Disturbed(), b.Beside())
	}
	_ = b.Close()
}

// No process is started after Drain; the kept one may still be used.
func TestDrainStartsNothing(t *testing.T) {
	n := newNursery(nil)
	if err := n.Prestart(nil); err != nil {
		t.Fatal(err)
	}
	if err := n.Prestart(nil); err != nil || len(n.started) != 1 {
		t.Errorf("Prestart = %v, %d started, want one to be enough", err, len(n.started))
	}
	n.Drain()
	p := n.dial(t)
	if _, err := n.Dial(t.Context()); !errors.Is(err, ErrDraining) {
		t.Errorf("Dial = %v, want ErrDraining", err)
	}
	if err := n.Prestart(nil); err != nil || len(n.started) != 1 {
		t.Errorf("Prestart while draining = %v, %d started", err, len(n.started))
	}
	n.Close()
	n.Keep(p) // too late
	n.Close()
	if n.Alive() != 0 || n.HasKept() {
		t.Errorf("%d alive, kept %v, want nothing left", n.Alive(), n.HasKept())
	}
}

// The next started process is probed once, unless another request must come first.
func TestU02NextProcessIsAsked(t *testing.T) {
	var asked int
	refusal := errors.New("it is of the other era")
	var answer error
	n := newNursery(func(_ context.Context, p *Process) error {
		if asked++; answer != nil {
			_ = p.Close()
		}
		return answer
	})
	defer n.Close()
	_ = n.dial(t).Close()
	n.AskNext()
	_ = n.dial(t).Close()
	_ = n.dial(t).Close()
	if asked != 1 {
		t.Errorf("asked %d times, want 1", asked)
	}
	answer = refusal
	n.AskNext()
	if _, err := n.Dial(t.Context()); !errors.Is(err, refusal) {
		t.Errorf("Dial = %v, want what was found", err)
	}
	n.SetFirst("initialize")
	n.AskNext()
	_ = n.dial(t).Close()
	if asked != 2 {
		t.Errorf("asked %d times, want no question to one that must be greeted first", asked)
	}
}

// Silence begins with the last message.
func TestU02AwaitSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNursery(nil)
		defer n.Close()
		p := n.dial(t)
		defer func() { _ = p.Close() }()
		go func() {
			time.Sleep(time.Second)
			_ = n.started[0].peer.Write([]byte("{}"))
			_, _ = p.Read()
		}()
		begun := time.Now()
		if silent := p.AwaitSilence(t.Context(), 2*time.Second); !silent || time.Since(begun).Round(100*time.Millisecond) != 3*time.Second {
			t.Errorf("AwaitSilence = %v after %v, want true 2 s after what it said", silent, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if p.AwaitSilence(ctx, 2*time.Second) {
			t.Error("AwaitSilence = true, want its context's end")
		}
	})
}

func TestStartFails(t *testing.T) {
	n := newNursery(nil)
	defer n.Close()
	n.err = errors.New("no such program")
	if _, err := n.Dial(t.Context()); err != n.err || n.Alive() != 0 {
		t.Errorf("Dial = %v with %d alive", err, n.Alive())
	}
	if err := n.Prestart(nil); err == nil || !strings.Contains(err.Error(), "no such program") || n.Alive() != 0 {
		t.Errorf("Prestart = %v with %d alive", err, n.Alive())
	}
}

// A borrower that leaves waits for no process that reads nothing: what it wanted to write is
// withdrawn, and the process stays usable.
func TestBorrowedCloseUnblocksWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := NewPipe()
		l := NewLauncher(func() (Conn, error) { return near, nil }, nil)
		p, err := l.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b := p.Borrow()
		written := make(chan error, 1)
		go func() { // ends with Close
			for {
				if err := b.Write([]byte("{}")); err != nil {
					written <- err
					return
				}
			}
		}()
		time.Sleep(time.Minute)
		if len(written) > 0 {
			t.Fatalf("Write to a process that does not read = %v", <-written)
		}
		_ = b.Close()
		if err := <-written; !errors.Is(err, ErrClosed) {
			t.Errorf("Write() = %v, want %v", err, ErrClosed)
		}
		mustRead(t, far)
		if err := p.Write([]byte("{}")); err != nil {
			t.Error(err)
		}
		_ = p.Close()
	})
}
