package back

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

// A watched is a session as the profile's watch uses it.
type watched struct{ s *session }

var _ watch.Session = watched{}

// Done implements [watch.Session].
func (w watched) Done() <-chan struct{} { return w.s.Link.Done() }

// Offers implements [watch.Session].
func (w watched) Offers() watch.Offers {
	caps, polls := &w.s.caps, w.s.opts.polls().Kinds(w.s.caps.Raw)
	o := watch.Offers{Lists: caps.Lists, Subscribe: caps.Subscribe || polls.Has(fanout.ResourceUpdated), Polls: polls}
	o.Channel, o.Reopening = w.s.Listening()
	return o
}

// Subscribe implements [watch.Session]. It subscribes upstream if the server supports
// that, and polls if that is configured.
func (w watched) Subscribe(ctx context.Context, uri string) error {
	var refusal *wire.Error
	polls := w.s.opts.polls().Kinds(w.s.caps.Raw).Has(fanout.ResourceUpdated)
	if w.s.caps.Subscribe {
		_, err := w.s.Request(ctx, spec.MethodSubscribe, uriParams(uri))
		if err != nil && !(polls && errors.As(err, &refusal)) {
			return err
		}
	}
	if !polls {
		return nil
	}
	err := w.s.polls.Watch(ctx, fanout.ResourceUpdated, uri)
	if errors.As(err, &refusal) && w.s.caps.Subscribe {
		_ = w.Unsubscribe(ctx, uri) // an error doesn't matter: there are no subscribers
	}
	return err
}

// Unsubscribe implements [watch.Session].
func (w watched) Unsubscribe(ctx context.Context, uri string) error {
	w.s.polls.Unwatch(fanout.ResourceUpdated, uri)
	if !w.s.caps.Subscribe {
		return nil
	}
	_, err := w.s.Request(ctx, spec.MethodUnsubscribe, uriParams(uri))
	return err
}

// WatchList implements [watch.Session].
func (w watched) WatchList(ctx context.Context, k fanout.Kind) error {
	return w.s.polls.Watch(ctx, k, "")
}

// UnwatchList implements [watch.Session].
func (w watched) UnwatchList(k fanout.Kind) { w.s.polls.Unwatch(k, "") }
