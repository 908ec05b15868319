package back

import (
	"bytes"
	"context"
	"encoding/json"
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
	return watch.Offers{
		Lists:     caps.Lists,
		Subscribe: caps.Subscribe || polls.Has(fanout.ResourceUpdated),
		Channel:   w.s.Listening(),
		Polls:     polls,
	}
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

// envelopeMeta are the keys of _meta that belong to the protocol's envelope. If a legacy
// server sends them at all, subscribers must not get them.
var envelopeMeta = []wire.Edit{
	{Name: spec.MetaProtocolVersion},
	{Name: spec.MetaClientInfo},
	{Name: spec.MetaClientCapabilities},
	{Name: spec.MetaLogLevel},
	{Name: spec.MetaSubscriptionID},
	{Name: spec.MetaServerInfo},
	{Name: spec.MetaProgressToken},
}

// foreignMeta returns a copy of meta without the keys of the envelope, or nil if nothing
// is left.
func foreignMeta(meta json.RawMessage) json.RawMessage {
	if len(meta) == 0 || !wire.IsObject(meta) {
		return nil
	}
	out := wire.AppendEdited(make([]byte, 0, len(meta)), meta, envelopeMeta...)
	if bytes.Equal(out, []byte("{}")) {
		return nil
	}
	return out
}
