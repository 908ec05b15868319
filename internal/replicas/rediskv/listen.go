package rediskv

import (
	"context"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
)

// reconnect is the pause before the hints are asked for again.
var reconnect = backoff.Backoff{Min: 100 * time.Millisecond, Max: 2 * time.Second}

// quiet is how long no hint may come before the connection is tried.
const quiet = 5 * time.Second

// listen takes in what is published, until ctx ends.
func (s *Store) listen(ctx context.Context) {
	defer close(s.done)
	for failures := 0; ; failures++ {
		heard, err := s.hear(ctx)
		if heard {
			failures = 0
		}
		if ctx.Err() != nil {
			return
		}
		s.log.Debug("no hints of Redis", "error", err)
		if backoff.Wait(ctx, backoff.Jitter(reconnect.After(failures))) != nil {
			return
		}
	}
}

// hear subscribes, and returns when the connection is of no use any more. That the
// subscription begins is a hint too: others may have been missed.
func (s *Store) hear(ctx context.Context) (heard bool, err error) {
	c, err := s.dial(ctx)
	if err != nil {
		return false, err
	}
	sub := redis.PubSubConn{Conn: c}
	defer func() { _ = sub.Close() }() // nothing is lost
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer stop()
	if err := sub.Subscribe(s.channel()); err != nil {
		return false, err
	}
	defer pinging(sub)()
	for {
		switch got := sub.ReceiveWithTimeout(2 * quiet).(type) {
		case error:
			return heard, got
		case redis.Pong:
		default:
			s.hints.Send()
			heard = true
		}
	}
}

// pinging pings until stop is called, so that a connection that is gone is noticed.
func pinging(sub redis.PubSubConn) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for backoff.Wait(ctx, quiet) == nil && sub.Ping("") == nil {
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
