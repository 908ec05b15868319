package detect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Serve implements [mcp.Handler]. If a back turns out to be of the wrong era while it runs
// a request, the right one runs it again, if that is safe.
func (d *Detector) Serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	for {
		back, err := d.await(ctx, req.Era)
		if err != nil {
			return nil, err
		}
		res, err := back.Serve(ctx, req, caller)
		switch {
		case err == nil || !d.replacedAfter(ctx, back, err):
			return res, err
		case !errors.Is(err, mcp.ErrOtherEra) && !errors.Is(err, mcp.ErrNotSent) && !spec.Repeatable(req.Method):
			return nil, wire.Errorf(spec.CodeInternal, "server %q was found to speak %s while it ran %s; the request may have taken effect and was not repeated: check before sending it again",
				d.opts.Name, d.Era().Speaks(), req.Method)
		}
	}
}

// Describe implements [mcp.Describer].
func (d *Detector) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	if d.recall != nil {
		if known := d.recall.describe(req); known != nil {
			return known, nil
		}
	}
	return d.describe(ctx, req)
}

// describe gets the description from the server.
func (d *Detector) describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	for {
		back, err := d.await(ctx, req.Era)
		if err == nil && back.Era() == spec.Legacy {
			err = d.awaitRelays(ctx)
		}
		if err != nil {
			return nil, err
		}
		desc, err := back.Describe(ctx, req)
		if err == nil && d.replaced(back) {
			continue // it may be the last one that the former back knew
		}
		if err == nil && d.recall != nil && isCurrent(back.Err()) {
			d.recall.described(req, back.Era(), desc, d.isGuess())
		}
		if err == nil || !d.replacedAfter(ctx, back, err) {
			return desc, err
		}
	}
}

// isCurrent reports whether a back with such an error returns the server's own
// description: if the server is down, it returns an older one.
func isCurrent(err error) bool { return err == nil || errors.Is(err, mcp.ErrStarting) }

// Watch implements [mcp.Source]. If the back is replaced meanwhile, the new one is asked: who was told
// to end with the former one hears of that from its mailbox.
func (d *Detector) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	for {
		back, err := d.await(ctx, spec.Unknown)
		if err != nil {
			return nil, nil, err
		}
		honored, release, err := back.Watch(ctx, p, want)
		if err == nil || !d.replacedAfter(ctx, back, err) {
			return honored, release, err
		}
	}
}

// RootsChanged implements [mcp.ClientFollower].
func (d *Detector) RootsChanged(req *mcp.Request) {
	if f, ok := d.current().(mcp.ClientFollower); ok {
		f.RootsChanged(req)
	}
}

// LevelChanged implements [mcp.ClientFollower].
func (d *Detector) LevelChanged(req *mcp.Request) {
	if f, ok := d.current().(mcp.ClientFollower); ok {
		f.LevelChanged(req)
	}
}

// ClientLeft implements [mcp.ClientFollower].
func (d *Detector) ClientLeft(req *mcp.Request) {
	if f, ok := d.current().(mcp.ClientFollower); ok {
		f.ClientLeft(req)
	}
}

// OpenRelay implements [mcp.Relayer]. If the back is replaced meanwhile, the new one is asked: the
// client has heard of no session yet.
func (d *Detector) OpenRelay(ctx context.Context, req *mcp.Request, m *wire.Message, h mcp.RelayClient) (mcp.Relay, []byte, error) {
	defer d.beginRelay()()
	for {
		back, err := d.await(ctx, spec.Legacy)
		if err != nil {
			return nil, nil, err
		}
		r, answer, err := d.openRelay(ctx, back, req, m, h)
		if r == nil && !errors.Is(err, mcp.ErrShutdown) || !d.replaced(back) {
			return r, answer, err
		}
		if r != nil {
			r.Close() // it ends with its back
		}
	}
}

// openRelay is OpenRelay at a back.
func (d *Detector) openRelay(ctx context.Context, back mcp.Back, req *mcp.Request, m *wire.Message, h mcp.RelayClient) (mcp.Relay, []byte, error) {
	relayer, ok := back.(mcp.Relayer)
	if !ok {
		return nil, nil, nil
	}
	r, answer, err := relayer.OpenRelay(ctx, req, m, h)
	if back.Era() == spec.Modern { // a server that speaks both eras: the verdict is about its newer one
		return r, answer, err
	}
	refused := r == nil && err == nil && d.opts.Launcher != nil || errors.Is(err, mcp.ErrOtherEra)
	switch {
	case refused && d.probeAgain(ctx, back) && d.Era() == spec.Modern:
		return nil, nil, nil
	case err == nil && r != nil && d.recall != nil && !d.isGuess():
		d.recall.memory.Found(spec.Legacy)
	}
	return r, answer, err
}

// isGuess reports whether the verdict is the era of the first client, or is based on
// silence. It is then not stored, because a server of both eras also opens sessions. If
// the first request that the server needs is known, the verdict is not a guess.
func (d *Detector) isGuess() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.guessed && (d.opts.Launcher == nil || d.opts.Launcher.First() == "")
}

// awaitRelays waits for the relays that are being opened with a command: they need its
// process, and their handshake also gives the description. Some clients open a session
// after they have waited some seconds for discovery.
func (d *Detector) awaitRelays(ctx context.Context) error {
	for d.opts.Launcher != nil {
		d.mu.Lock()
		opening, changed := d.openingRelays, d.changed
		d.mu.Unlock()
		if opening == 0 {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.closing:
			return mcp.ErrShutdown
		}
	}
	return nil
}

// replacedAfter reports whether a back that failed was replaced. It may probe the server
// to find out.
func (d *Detector) replacedAfter(ctx context.Context, back mcp.Back, err error) bool {
	switch {
	case errors.Is(err, mcp.ErrOtherEra):
		return d.probeAgain(ctx, back)
	case errors.Is(err, mcp.ErrShutdown):
		return d.replaced(back)
	}
	return false
}

// probeAgain waits for another probe, and reports whether it has replaced the back.
func (d *Detector) probeAgain(ctx context.Context, back mcp.Back) bool {
	d.mu.Lock()
	before := max(d.probed, d.judged) // the end of the probe that the back is of is no news
	d.mu.Unlock()
	if d.opts.Probe == nil {
		return false
	}
	d.requestProbe()
	for {
		d.mu.Lock()
		over, changed := d.back != back || d.probed > before, d.changed
		d.mu.Unlock()
		if over {
			return d.replaced(back)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-d.closing:
			return false
		}
	}
}

// requestProbe requests a probe without delay. It does not block.
func (d *Detector) requestProbe() {
	d.requests.Send()
}

// await returns the back of the verdict. It waits while nothing is known of the server. One at
// a URL that was down is asked again at once, as by a client without mcpbridge; of a command
// that fails, which has pauses between its starts, it returns the error. era is that of the
// client, if any.
func (d *Detector) await(ctx context.Context, era spec.Era) (mcp.Back, error) {
	d.wake()
	if back := d.current(); back != nil {
		return back, nil // the usual case, without a timer
	}
	defer d.wait()()
	late := time.NewTimer(d.opts.Patience)
	defer late.Stop()
	for {
		back, changed, err := d.backFor(era)
		switch {
		case back != nil:
			return back, nil
		case !errors.Is(err, mcp.ErrStarting):
			return nil, &mcp.UnavailableError{Err: fmt.Errorf("server %q can't be used: %w", d.opts.Name, err)}
		}
		select {
		case <-changed:
		case <-late.C:
			return nil, fmt.Errorf("server %q is still %w after %v; try again later, or raise timeouts.connect if it always takes that long", d.opts.Name, mcp.ErrStarting, d.opts.Patience)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-d.closing:
			return nil, mcp.ErrShutdown
		}
	}
}

// backFor returns the back, or the reason why there is none, and a channel that is closed
// when that may have changed. It requests a probe of a server that was down, unless it was
// asked just now. With ClientFirst it requests a probe, or assumes the client's era.
func (d *Detector) backFor(era spec.Era) (mcp.Back, <-chan struct{}, error) {
	d.mu.Lock()
	back, err, changed := d.back, d.err, d.changed
	undecided := back == nil && d.opts.ClientFirst && !d.probing && !time.Now().Before(d.nextProbe)
	discover := era != spec.Legacy || d.opts.Launcher != nil && d.opts.Launcher.First() == spec.MethodDiscover
	if undecided && discover {
		d.probing = true
	}
	again := back == nil && d.opts.Probe != nil && !d.opts.ClientFirst && d.opts.Launcher == nil &&
		(d.probing || time.Since(d.lastProbe) >= clientPause)
	if again && !d.probing {
		d.probing = true
		d.requestProbe()
	}
	d.mu.Unlock()
	switch {
	case again:
		return nil, changed, mcp.ErrStarting
	case !undecided:
		return back, changed, err
	case discover:
		d.requestProbe()
		return nil, changed, mcp.ErrStarting
	}
	d.settle(Finding{Era: spec.Legacy, Why: "its client does", assumed: true})
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.back, d.changed, d.err
}
