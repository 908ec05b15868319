//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"time"
)

// A side is one party of the fan-out with its readers.
type side struct {
	server, readers *child
	source          *child  // who is told to cause an event
	kind            string  // of the streams
	rss, inUse      float64 // bytes per idle stream
}

// streams measures many idle streams and what an event to all of them costs.
func (b *bench) streams() error {
	var cr crew
	upstream, err := cr.hire(b, "upstream")
	if err != nil {
		return err
	}
	ours, err := b.hireSide(&cr, "gateway", upstream)
	if err != nil {
		return err
	}
	theirs, err := b.hireSide(&cr, "hub", upstream)
	if err != nil {
		return err
	}
	for _, s := range []*side{ours, theirs} {
		if err := s.open(b.o.streams); err != nil {
			return err
		}
	}
	if b.o.profile != "" {
		if err := ours.server.ask(nil, "heap %s", filepath.Join(b.o.profile, "streams.heap.pprof")); err != nil {
			return err
		}
	}
	b.table.add(row{what: "memory per idle listen stream", got: ours.rss / 1024, unit: " KiB", most: 7.2, goal: 7,
		detail: fmt.Sprintf("resident; heap and stacks %.1f KiB, bare hub %.1f KiB resident", ours.inUse/1024, theirs.rss/1024)})
	if err := b.events(ours, theirs); err != nil {
		return err
	}
	return cr.stop(b.ctx)
}

// sessions measures the idle streams of legacy clients, their sessions included. Their
// server is modern, or each would have a session upstream, too.
func (b *bench) sessions() error {
	var cr crew
	for _, kind := range []struct {
		name, what string
		most, goal float64
	}{{"get", "GET stream", 9.3, 9}, {"events", "HTTP+SSE stream", 10, 9}} {
		s := &side{kind: kind.name}
		var err error
		if s.server, err = cr.hire(b, "topics"); err != nil {
			return err
		}
		if s.readers, err = cr.hire(b, "readers"); err != nil {
			return err
		}
		if err := s.open(b.o.streams); err != nil {
			return err
		}
		if b.o.profile != "" {
			if err := s.server.ask(nil, "heap %s", filepath.Join(b.o.profile, kind.name+".heap.pprof")); err != nil {
				return err
			}
		}
		b.table.add(row{what: "memory per idle " + kind.what, got: s.rss / 1024, unit: " KiB", most: kind.most, goal: kind.goal,
			detail: fmt.Sprintf("resident; heap and stacks %.1f KiB", s.inUse/1024)})
	}
	return cr.stop(b.ctx)
}

func (b *bench) hireSide(cr *crew, kind string, upstream *child) (*side, error) {
	s := &side{kind: kind, source: upstream}
	var err error
	if s.server, err = cr.hire(b, kind, "-upstream", upstream.addr); err != nil {
		return nil, err
	}
	if kind == "hub" {
		s.source = s.server
	}
	s.readers, err = cr.hire(b, "readers")
	return s, err
}

// open opens the streams and notes what memory the server takes for them.
func (s *side) open(n int) error {
	var before, after usage
	if err := s.readers.ask(nil, "open %s %s 1 1", s.kind, s.server.addr); err != nil { // what is there once
		return err
	}
	if err := s.server.ask(&before, "settle"); err != nil {
		return err
	}
	if err := s.readers.ask(nil, "open %s %s %d 1", s.kind, s.server.addr, n-1); err != nil {
		return err
	}
	if err := s.server.ask(&after, "settle"); err != nil {
		return err
	}
	s.rss = float64(after.RSS-before.RSS) / float64(n-1)
	s.inUse = float64(after.InUse-before.InUse) / float64(n-1)
	return nil
}

// events sends events to all streams of both sides, in turns.
func (b *bench) events(ours, theirs *side) error {
	var cpu, last pairs
	for i := -1; i < b.o.rounds; i++ { // the first round warms up
		var c, l [2]float64
		for j := range c {
			k := (i + 1 + j) % 2
			var err error
			if c[k], l[k], err = []*side{ours, theirs}[k].round(b.o.streams); err != nil {
				return err
			}
		}
		if i >= 0 {
			cpu.add(c[0], c[1])
			last.add(l[0], l[1])
		}
	}
	if b.o.profile != "" {
		if err := b.profiled(ours.server, "streams", func() error { _, _, err := ours.round(b.o.streams); return err }); err != nil {
			return err
		}
	}
	b.table.add(row{what: fmt.Sprintf("CPU per delivered event, 1 → %d streams", b.o.streams), got: cpu.ratio(), unit: "×", most: 1.1, goal: 0.7, detail: cpu.detail("bare hub")})
	b.table.add(row{what: "time to the last stream", got: last.ratio(), unit: "×", detail: last.detail("bare hub")})
	return nil
}

// round sends a few events, each after the former has reached every stream. It
// returns nanoseconds of CPU per delivery and until the last.
func (s *side) round(streams int) (perEvent, last float64, err error) {
	const events = 3
	total, err := s.server.cpu(func() error {
		for range events {
			took, err := s.event(streams)
			if err != nil {
				return err
			}
			last += float64(took) / events
		}
		return nil
	})
	return total / float64(events*streams), last, err
}

func (s *side) event(streams int) (time.Duration, error) {
	if err := s.readers.ask(nil, "expect %d", streams); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := s.source.ask(nil, "event"); err != nil {
		return 0, err
	}
	var at int64
	err := s.readers.ask(&at, "await")
	return time.Unix(0, at).Sub(start), err
}
