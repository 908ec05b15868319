package rediskv

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// reconnect is the pause before the hints are asked for again.
var reconnect = wake.Backoff{Min: 100 * time.Millisecond, Max: 2 * time.Second}

// quiet is how long no hint may come before the connection is tried.
const quiet = 5 * time.Second

// errMute says that the server does not answer where the hints come from.
var errMute = errors.New("no answer to a ping")

// listen takes in what is published, until ctx ends.
func (s *Store) listen(ctx context.Context) {
	defer close(s.done)
	for failures := 0; ctx.Err() == nil; {
		heard, err := s.subscribe(ctx)
		if heard {
			failures = 0
		}
		s.log.Debug("no hints of Redis", "error", err)
		if wake.Wait(ctx, wake.Jitter(reconnect.After(failures))) != nil {
			return
		}
		failures++
	}
}

// subscribe connects anew, and returns when nothing can be heard any more. Its connection may
// be to a server that was a master, which tells what is published, too, while it follows its
// master.
func (s *Store) subscribe(ctx context.Context) (heard bool, err error) {
	pubsub := s.client.Subscribe(ctx, s.channel())
	stop := context.AfterFunc(ctx, func() { _ = pubsub.Close() }) // which ends receiving
	defer func() {
		if stop() {
			_ = pubsub.Close()
		}
	}()
	for ctx.Err() == nil {
		if err := hear(ctx, pubsub); err != nil {
			return heard, err
		}
		heard = true
		s.hints.Send()
	}
	return heard, ctx.Err()
}

// hear returns after a message. That the subscription begins is one, too: others may have
// been missed.
func hear(ctx context.Context, pubsub *redis.PubSub) error {
	for tried := false; ; tried = true {
		_, err := pubsub.ReceiveTimeout(ctx, quiet)
		timeout := net.Error(nil)
		switch {
		case !errors.As(err, &timeout) || !timeout.Timeout():
			return err
		case tried:
			return errMute
		}
		if err := pubsub.Ping(ctx); err != nil {
			return err
		}
	}
}
