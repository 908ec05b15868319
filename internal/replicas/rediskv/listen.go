package rediskv

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
)

// reconnect is the pause before the hints are asked for again.
var reconnect = backoff.Backoff{Min: 100 * time.Millisecond, Max: 2 * time.Second}

// quiet is how long no hint may come before the connection is tried.
const quiet = 5 * time.Second

// listen takes in what is published, until ctx ends.
func (s *Store) listen(ctx context.Context) {
	defer close(s.done)
	for failures := 0; ctx.Err() == nil; {
		err := s.hear(ctx)
		if err == nil {
			failures = 0
			s.hints.Send()
			continue
		}
		s.log.Debug("no hints of Redis", "error", err)
		if backoff.Wait(ctx, backoff.Jitter(reconnect.After(failures))) != nil {
			return
		}
		failures++
	}
}

// hear returns after a message, or if nothing can be heard: then the next call connects
// anew. That the subscription begins is a message too: others may have been missed.
func (s *Store) hear(ctx context.Context) error {
	for {
		_, err := s.pubsub.ReceiveTimeout(ctx, quiet)
		timeout := net.Error(nil)
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			return err
		}
		if err := s.pubsub.Ping(ctx); err != nil {
			return err
		}
	}
}
