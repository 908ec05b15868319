package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// silencePoll is the polling interval of AwaitSilence.
const silencePoll = 20 * time.Millisecond

// A Process is a Conn to one process of a server's command. It can change its owner: one
// may probe it, and leave it to another that uses it.
type Process struct {
	l    *Launcher
	conn Conn

	reads sync.WaitGroup // reads that a Borrowed has begun
	heard atomic.Int64   // number of messages that were read
	told  atomic.Bool    // something was written

	refused atomic.Bool  // see SetRefused
	silent  atomic.Bool  // see SetSilent
	used    atomic.Int64 // the last id of a request; zero if none was sent
	adopted atomic.Bool  // by a session

	once     sync.Once
	closeErr error // read only after once

	// Set by launch, read-only after.
	started      time.Time
	endedBefore  int // number of processes that had ended when this one was started
	startedAmong int // number of processes that were ending then

	// Guarded by Launcher.mu.
	taken chan struct{} // closed when the process is no longer kept; nil if it never was

	// mu guards the fields below. It is not held during a read.
	mu      sync.Mutex
	pending chan received // the result of a read that a Borrowed has begun and left behind; nil if none
	closing bool          // start no more reads
}

type received struct {
	msg []byte
	err error
}

// Read implements [Conn].
func (p *Process) Read() ([]byte, error) {
	if r, ok := p.await(nil); ok {
		return r.msg, r.err
	}
	msg, err := p.conn.Read()
	p.heard.Add(1)
	return msg, err
}

// await returns the result of a running read. It returns false if there is none, or if
// done is closed first.
func (p *Process) await(done <-chan struct{}) (received, bool) {
	p.mu.Lock()
	pending := p.pending
	p.mu.Unlock()
	if pending == nil {
		return received{}, false
	}
	select {
	case r := <-pending:
		p.mu.Lock()
		p.pending = nil
		p.mu.Unlock()
		return r, true
	case <-done:
		return received{}, false
	}
}

// begin starts a read, unless one is running.
func (p *Process) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending != nil {
		return
	}
	pending := make(chan received, 1)
	p.pending = pending
	if p.closing {
		pending <- received{nil, ErrClosed}
		return
	}
	p.reads.Go(func() { // ends with the next message or the connection; Close waits for it
		msg, err := p.conn.Read()
		p.heard.Add(1)
		pending <- received{msg, err}
	})
}

// Write implements [Conn].
func (p *Process) Write(msg []byte) error { return p.WriteUntil(context.Background(), msg) }

// WriteUntil is [WriteUntil] for the process.
func (p *Process) WriteUntil(ctx context.Context, msg []byte) error {
	err := WriteUntil(ctx, p.conn, msg)
	if err == nil {
		p.told.Store(true)
	}
	return err
}

// Close ends the process; see [Conn].
func (p *Process) Close() error {
	p.once.Do(func() {
		adopted := 0
		if p.adopted.Load() {
			adopted = 1
		}
		p.l.mu.Lock()
		p.l.alive--
		p.l.ending++
		p.l.adopted += adopted
		delete(p.l.processes, p)
		p.l.mu.Unlock()
		p.mu.Lock()
		p.closing = true
		p.mu.Unlock()
		p.closeErr = p.conn.Close()
		p.reads.Wait()
		p.l.mu.Lock()
		p.l.ending--
		p.l.adopted -= adopted
		p.l.ended++
		p.l.announceLocked()
		p.l.mu.Unlock()
	})
	return p.closeErr
}

// LastID returns the highest id of a request that was sent to the process, or zero. The
// next owner continues from there.
func (p *Process) LastID() int64 { return p.used.Load() }

// SetLastID records the highest id of a request that was sent to the process.
func (p *Process) SetLastID(id int64) { p.used.Store(max(id, p.used.Load())) }

// SetRefused records whether the process has refused initialize, as a process of a modern
// server does.
func (p *Process) SetRefused(refused bool) { p.refused.Store(refused) }

// SetSilent records whether the process has not responded to the last request. It may
// still support it.
func (p *Process) SetSilent(silent bool) { p.silent.Store(silent) }

// IsSilent returns the value of SetSilent.
func (p *Process) IsSilent() bool { return p.silent.Load() }

// Done returns a channel that is closed when the process has ended, or nil if that can't
// be known.
func (p *Process) Done() <-chan struct{} {
	if m, ok := p.conn.(exitReporter); ok {
		return m.Done()
	}
	return nil
}

// Err returns how the process ended; see [Command.Err].
func (p *Process) Err() error {
	if m, ok := p.conn.(exitReporter); ok {
		return m.Err()
	}
	return nil
}

func (p *Process) hasEnded() bool { return wake.Closed(p.Done()) }

// EndsWithin reports whether the process has ended or ends within d.
func (p *Process) EndsWithin(d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-p.Done():
		return true
	case <-late.C:
		return false
	}
}

// Noise is [Noise] of the process.
func (p *Process) Noise() string { return Noise(p.conn) }

// Ending returns, for people, how a process has ended, and what it wrote instead of
// messages.
func (p *Process) Ending() string {
	p.begin() // its last output may be unread
	late := make(chan struct{})
	defer time.AfterFunc(exitGrace, func() { close(late) }).Stop()
	p.await(late)
	text := "it ended"
	if err := Exited(p.Err()); err != nil {
		text = err.Error()
	}
	return text + Noise(p)
}

// Disturbed reports whether another process of the command was ending after this one was
// started, which may have disturbed it.
func (p *Process) Disturbed() bool {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	return p.startedAmong+p.l.ending > 0 || p.l.ended > p.endedBefore
}

// PID returns the id of the process, or zero if there is none.
func (p *Process) PID() int {
	if c, ok := innermost(p.conn).(*Command); ok {
		return c.cmd.Process.Pid
	}
	return 0
}

// Started returns when the process was started.
func (p *Process) Started() time.Time { return p.started }

// Beside returns the number of other processes of the command.
func (p *Process) Beside() int { return p.l.Alive() - 1 }

// Unread returns the number of written bytes that the process has not read, and whether
// the system can tell.
func (p *Process) Unread() (n int, known bool) {
	if u, ok := p.conn.(interface{ Unread() (int, bool) }); ok {
		return u.Unread()
	}
	return 0, false
}

// HasRead reports whether something was written and the process has read all of it, if
// the system can tell.
func (p *Process) HasRead() bool {
	unread, _ := p.Unread()
	return unread == 0 && p.told.Load()
}

// AwaitSilence waits until the process has read everything that was written, if the
// system can tell, and has written nothing for d since then, and returns true. It returns
// false when ctx ends.
func (p *Process) AwaitSilence(ctx context.Context, d time.Duration) bool {
	tick := time.NewTicker(silencePoll)
	defer tick.Stop()
	since, heard := time.Now(), p.heard.Load()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
		unread, _ := p.Unread()
		if now := p.heard.Load(); unread > 0 || now != heard {
			since, heard = time.Now(), now
		} else if time.Since(since) >= d {
			return true
		}
	}
}

// SetQuiet selects debug level for logging output that is not a message, and how the
// process ends.
func (p *Process) SetQuiet(quiet bool) {
	if c, ok := p.conn.(*Command); ok {
		c.stderrTail.quiet.Store(quiet)
	}
}

// unwrap returns the underlying connection.
func (p *Process) unwrap() Conn { return p.conn }

// Borrow returns the process as a connection whose Close does not close the process,
// unless Adopt was called. Messages that it has not read stay unread.
func (p *Process) Borrow() *Borrowed {
	b := &Borrowed{p: p}
	b.live, b.end = context.WithCancel(context.Background())
	return b
}

// A Borrowed is a Conn to a process that may get another owner.
type Borrowed struct {
	p       *Process
	live    context.Context // ends with Close
	end     context.CancelFunc
	adopted atomic.Bool
}

// Read implements [Conn].
func (b *Borrowed) Read() ([]byte, error) {
	if b.adopted.Load() {
		return b.p.Read()
	}
	b.p.begin()
	if r, ok := b.p.await(b.live.Done()); ok {
		return r.msg, r.err
	}
	return nil, ErrClosed
}

// Write implements [Conn].
func (b *Borrowed) Write(msg []byte) error { return b.WriteUntil(context.Background(), msg) }

// WriteUntil is [WriteUntil] for the process. It ends with Close, too, which may leave the
// process as it is.
func (b *Borrowed) WriteUntil(ctx context.Context, msg []byte) error {
	switch {
	case b.live.Err() != nil:
		return ErrClosed
	case b.adopted.Load():
		return b.p.WriteUntil(ctx, msg)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.live, func() { cancel(ErrClosed) })()
	return b.p.WriteUntil(ctx, msg)
}

// Adopt makes the borrower the owner: Close then closes the process.
func (b *Borrowed) Adopt() {
	b.p.adopted.Store(true)
	b.adopted.Store(true)
}

// Close implements [Conn].
func (b *Borrowed) Close() error {
	var err error
	if b.adopted.Load() {
		err = b.p.Close()
	}
	b.end()
	return err
}

// unwrap returns the underlying connection.
func (b *Borrowed) unwrap() Conn { return b.p.conn }

// innermost returns the connection under a Process or a Borrowed.
func innermost(conn Conn) Conn {
	if w, ok := conn.(interface{ unwrap() Conn }); ok {
		return w.unwrap()
	}
	return conn
}
