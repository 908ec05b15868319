package detect

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// run probes until there is a verdict, and again when it is old or in doubt.
func (d *Detector) run(ctx context.Context) {
	pause := doubtPauses.Min
	for first := true; ; first = false {
		was := d.Era()
		if !first || d.opts.ClientFirst || was != spec.Unknown {
			calm, ok := d.awaitDoubt(was, pause)
			switch {
			case !ok:
				return
			case calm:
				pause = doubtPauses.Min
			default:
				pause = doubtPauses.Next(pause)
			}
			was = d.Era() // a client's request may have set it
		}
		if era := d.decide(ctx); ctx.Err() != nil {
			return
		} else if era != was {
			pause = doubtPauses.Min
		}
	}
}

// decide probes until there is evidence. If there is a verdict already, or with
// ClientFirst, it probes only once.
func (d *Detector) decide(ctx context.Context) spec.Era {
	for pause := probePauses.Min; ; pause = probePauses.Next(pause) {
		f := d.probe(ctx)
		if ctx.Err() != nil {
			return spec.Unknown
		}
		era, settled := d.apply(f)
		switch {
		case settled || d.opts.ClientFirst && !f.Starting:
			d.probeEnded(pause)
			return era
		case f.Starting:
			d.probeEnded(0)
			continue
		}
		d.probeEnded(pause)
		select {
		case <-d.doubts: // probes are in progress already
		case <-d.requests:
		case <-time.After(wake.Jitter(pause)):
		case <-d.closing:
			return spec.Unknown
		}
	}
}

// probe probes the server once.
func (d *Detector) probe(ctx context.Context) Finding {
	d.mu.Lock()
	d.probing = true
	d.mu.Unlock()
	select {
	case <-d.requests: // this probe answers the request
	default:
	}
	select {
	case <-d.doubts: // and what is in doubt so far
	default:
	}
	short, cancel := context.WithTimeout(ctx, d.opts.Timeout)
	defer cancel()
	return d.opts.Probe(short)
}

// awaitDoubt waits until the verdict has to be checked, but at least for a pause unless a
// client requests a probe. calm reports that there was
// no doubt, or none for long.
func (d *Detector) awaitDoubt(era spec.Era, pause time.Duration) (calm, ok bool) {
	begun := time.Now()
	var old <-chan time.Time
	if age := d.lasts(era); age > 0 {
		old = time.After(age + rand.N(age/10+1))
	}
	select {
	case <-time.After(pause):
	case <-d.requests:
		return false, true
	case <-d.closing:
		return false, false
	}
	select {
	case why := <-d.doubts:
		d.log.Info("probing the server again", "verdict", era.String(), "reason", why)
	case <-old:
		d.log.Debug("probing the server again", "verdict", era.String(), "reason", "the verdict is old")
		return true, true
	case <-d.requests:
	case <-d.closing:
		return false, false
	}
	return time.Since(begun) > 2*doubtPauses.Max, true
}

// lasts returns how long a verdict lasts before it is checked without a doubt; zero for ever. An unsure
// one lasts longer each time that it is found again.
func (d *Detector) lasts(era spec.Era) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.unsure > 0:
		return wake.Backoff{Min: doubtPauses.Min, Max: d.opts.Horizon}.After(d.unsure - 1)
	case era == spec.Legacy:
		return d.opts.Horizon
	}
	return 0
}

// apply applies a finding, and reports whether there is a verdict.
func (d *Detector) apply(f Finding) (spec.Era, bool) {
	was := d.Era()
	if d.wavers(f, was) {
		return was, true
	}
	switch {
	case f.Era == was && was != spec.Unknown:
		if d.recall != nil && !f.Guess {
			d.recall.memory.Found(f.Era) // as of now
		}
		return was, true
	case f.Era != spec.Unknown:
		if d.settle(f) && d.recall != nil && !f.Guess {
			d.recall.memory.Found(f.Era)
		}
		era := d.Era()
		return era, era != spec.Unknown
	case was == spec.Unknown && !f.Starting && d.setError(f.Why, f.Public):
		d.log.Warn("server "+cmp.Or(f.Trouble, "does not answer")+", trying again", "error", f.Why)
	}
	return was, was != spec.Unknown
}

// wavers takes in how sure a finding is, and reports whether it is the first unsure one that
// contradicts a modern verdict, which has to come twice in a row to end what clients have open.
func (d *Detector) wavers(f Finding, was spec.Era) bool {
	if f.Era == spec.Unknown {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unsure++; !f.Unsure {
		d.unsure = 0
	}
	if was == spec.Modern && d.unsure == 1 {
		return true
	}
	if d.guessed = f.Guess; f.Era == was {
		d.verdict.why = f.Why
	}
	return false
}

// settle makes a finding the verdict, and reports whether its back could be opened.
func (d *Detector) settle(f Finding) bool {
	back, err := d.opts.Open(f)
	if err == nil {
		d.adopt(f, back)
		return true
	}
	if d.Era() != spec.Unknown || d.setError(err.Error(), "") {
		d.log.Error("server can't be served", "era", f.Era.String(), "error", err)
	}
	return false
}

// setError sets the reason why nothing is served, and reports whether it has changed.
// public is the text for clients, if that differs.
func (d *Detector) setError(why, public string) bool {
	if d.recall != nil {
		d.recall.failed()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil && d.err.Error() == why {
		return false
	}
	d.err = &unusableError{why, cmp.Or(public, why)}
	d.verdict.failed = time.Now()
	d.announceLocked()
	return true
}

// An unusableError is the reason why there is no verdict.
type unusableError struct{ why, public string }

func (e *unusableError) Error() string { return e.why }

// Public returns the text for clients.
func (e *unusableError) Public() string { return e.public }

// adopt sets the back, and ends the previous one in the background.
func (d *Detector) adopt(f Finding, back mcp.Back) {
	d.logEra(f) // before the back logs its state
	back.Start()
	d.mu.Lock()
	if d.closed || d.era == f.Era || f.assumed && d.back != nil { // a client's request was faster, or a probe
		d.mu.Unlock()
		d.end(back)
		return
	}
	former, was := d.back, d.era
	d.back, d.era, d.err = back, f.Era, nil
	d.verdict.why, d.verdict.since = f.Why, time.Now()
	d.guessed = d.guessed || f.assumed
	if d.probing {
		d.judged = d.probed + 1
	}
	d.announceLocked()
	if former != nil { // no request has reached the new back yet, whose clients have nothing to end
		d.onReplaced(fmt.Errorf("server %q speaks %s, not %s as before", d.opts.Name, f.Era.Speaks(), was.Speaks()))
		d.running.Go(func() { d.end(former) }) // ends by its time-out
	}
	d.mu.Unlock()
}

// logEra logs the era, unless a client's request was faster. A guess is logged at debug
// level only, because the attempt to open a session follows.
func (d *Detector) logEra(f Finding) {
	level := slog.LevelInfo
	if f.Guess {
		level = slog.LevelDebug
	}
	if d.Era() != f.Era {
		d.log.Log(context.Background(), level, "server speaks "+f.Era.Speaks(), "era", f.Era.String(), "reason", f.Why)
	}
}

func (d *Detector) end(back mcp.Back) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := back.Close(ctx); err != nil {
		d.log.Warn("ending the connections of the other era", "error", err)
	}
}
