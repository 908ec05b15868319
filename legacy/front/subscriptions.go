package front

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
	"github.com/mcpbridge/mcpbridge/legacy/projection"
)

// listRetries are the pauses between attempts to subscribe to lists.
var listRetries = wake.Backoff{Min: time.Second, Max: time.Minute}

// subscriptionSize is the memory of a subscription without its URI, in bytes.
const subscriptionSize = 512

// subscriptions are the subscriptions of a session. Changes wait in its mailbox until
// there is a stream.
type subscriptions struct {
	session *session
	mail    *fanout.Mailbox

	joined       sync.Once
	subscription mcp.Subscription // nil if join failed; read after joined only
	err          error
	scope        string

	// mu guards the fields below.
	mu       sync.Mutex
	begun    bool
	closed   bool
	lists    mcp.Filter // the subscribed lists
	uris     []string   // the subscribed resources, sorted
	reserved int        // URIs of subscriptions in progress
}

func (s *subscriptions) init(of *session, mail *fanout.Mailbox) {
	s.session, s.mail = of, mail
	if mail == nil {
		s.mail = fanout.NewMailbox(fanout.MailboxOptions{})
	}
}

// join registers the session for changes. It does so at the first topic: most sessions
// have none.
func (s *subscriptions) join() (mcp.Subscription, error) {
	s.joined.Do(func() {
		req := s.session.neutralRequest(&wire.Message{Method: spec.MethodSubscribe}, originOf(s.session.opener))
		if s.err = s.session.front.opts.Admit(req); s.err == nil {
			s.scope = req.Profile.Scope
			s.subscription, s.err = s.session.front.opts.Subscriber.Subscribe(req, s.mail, mcp.SubscribeOptions{})
		}
	})
	return s.subscription, s.err
}

// begin subscribes to the lists that the server offers, once the client is ready for
// changes.
func (s *subscriptions) begin() {
	want := s.offered()
	if len(want.Topics("")) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return
	}
	s.begun = true
	begun := time.Now()
	s.session.spawn(func(ctx context.Context) { s.addAll(ctx, want, begun) }) // ends with the session
}

// offered returns what the session follows without being asked.
func (s *subscriptions) offered() mcp.Filter {
	o := &s.session.offered
	return mcp.Filter{
		Tools: o.Lists.Tools, Prompts: o.Lists.Prompts, Resources: o.Lists.Resources,
		Losses: o.Logging && s.session.front.opts.TellLosses,
	}
}

// addAll subscribes to lists, and to resources that the session has already, and retries with
// growing pauses, because the client was promised changes. What may have changed since then is marked
// as changed, if that is long ago.
func (s *subscriptions) addAll(ctx context.Context, want mcp.Filter, since time.Time) {
	for pause, marked := listRetries.Min, false; ; pause = listRetries.Next(pause) {
		followed := s.filter().URIs // the client may have unsubscribed from some meanwhile
		want.URIs = slices.DeleteFunc(want.URIs, func(uri string) bool { _, still := slices.BinarySearch(followed, uri); return !still })
		member, err := s.join()
		some := false
		if err == nil {
			var held mcp.Filter
			held, err = member.Add(ctx, want)
			if some = len(held.Topics("")) > 0; err != nil {
				held.URIs = want.URIs // which are asked for again
			}
			s.hold(want, held)
		}
		// The client may have read them meanwhile. What is held at first does not wait for the rest.
		if (err == nil || some && !marked) && time.Since(since) >= listRetries.Min {
			s.markAll()
			marked = true
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		level := slog.LevelWarn
		if errors.As(err, new(*mcp.LoginError)) { // as long as its user has not logged in
			level = slog.LevelDebug
		}
		s.session.front.log.Log(ctx, level, "subscribing failed, trying again", "session", s.session.name, "error", err)
		if wake.Wait(ctx, wake.Jitter(pause)) != nil {
			return
		}
	}
}

// hold stores which lists are held, and removes the resources that are not.
func (s *subscriptions) hold(want, held mcp.Filter) {
	lost := 0
	s.mu.Lock()
	for _, uri := range want.URIs {
		if at, known := slices.BinarySearch(s.uris, uri); known && !slices.Contains(held.URIs, uri) {
			s.uris = slices.Delete(s.uris, at, at+1)
			lost += sizeOf(uri)
		}
	}
	held.URIs = nil
	s.lists = held
	s.mu.Unlock()
	s.session.streams.Give(lost)
}

// takeOver takes the memory for what a session follows, and stores it.
func (s *subscriptions) takeOver(uris []string) error {
	size := 0
	for _, uri := range uris {
		size += sizeOf(uri)
	}
	if err := s.session.streams.Take(size); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uris = slices.Compact(slices.Sorted(slices.Values(uris)))
	return nil
}

// resume subscribes to what the session has followed at another replica, and then marks all of
// it as changed.
func (s *subscriptions) resume(lists bool) {
	s.mu.Lock()
	s.begun = lists
	var want mcp.Filter
	if lists {
		want = s.offered()
	}
	want.URIs = slices.Clone(s.uris)
	s.mu.Unlock()
	if len(want.Topics("")) > 0 {
		s.session.spawn(func(ctx context.Context) { s.addAll(ctx, want, time.Time{}) }) // ends with the session
	}
}

// subscribe returns when the server has acknowledged the URI.
//
// Spec: 2025-11-25, server/resources, Subscriptions.
func (s *subscriptions) subscribe(ctx context.Context, m *wire.Message) error {
	uri, err := s.uriOf(m)
	if err != nil {
		return err
	}
	if err := s.reserve(uri); err != nil {
		return err
	}
	defer s.unreserve()
	if err := s.session.streams.Take(sizeOf(uri)); err != nil {
		return err
	}
	if err = s.ask(ctx, uri); err != nil || !s.add(uri) {
		s.session.streams.Give(sizeOf(uri))
	}
	return err
}

func sizeOf(uri string) int { return subscriptionSize + 2*len(uri) }

// add adds a subscribed URI. It reports false if it was subscribed before.
func (s *subscriptions) add(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, held := slices.BinarySearch(s.uris, uri)
	if held || s.closed {
		return false
	}
	s.uris = slices.Insert(s.uris, at, uri)
	return true
}

// ask returns when the server has acknowledged a URI.
func (s *subscriptions) ask(ctx context.Context, uri string) error {
	member, err := s.join()
	if err != nil {
		return err
	}
	held, err := member.Add(ctx, mcp.Filter{URIs: []string{uri}})
	switch {
	case err != nil:
		return fmt.Errorf("subscribing to %s on server %q: %w", uri, s.session.front.opts.Name, err)
	case len(held.URIs) == 0:
		e := wire.Errorf(spec.CodeInvalidParams, "server %q does not accept a subscription to %s", s.session.front.opts.Name, uri)
		e.Data = wire.AppendEdited(nil, nil, wire.Edit{Name: "uri", Value: wire.Quote(uri)})
		return e
	}
	return nil
}

// reserve takes a place for a URI until unreserve.
func (s *subscriptions) reserve(uri string) error {
	most := s.session.front.opts.Limits.Int(limits.ListenTopics)
	s.mu.Lock()
	_, held := slices.BinarySearch(s.uris, uri)
	full := !held && len(s.uris)+s.reserved >= most
	if !full {
		s.reserved++
	}
	s.mu.Unlock()
	if !full {
		return nil
	}
	s.session.front.limits.Hit(limits.ListenTopics.Key, "subscription refused: the session has too many", "session", s.session.name, "limit", most)
	return wire.Errorf(spec.CodeInvalidParams, "this session has subscriptions to %d resources, the limit; unsubscribe from some, or %s", most, limits.ListenTopics.Raise())
}

func (s *subscriptions) unreserve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

// unsubscribe unsubscribes from a URI. It may be called again.
func (s *subscriptions) unsubscribe(m *wire.Message) error {
	uri, err := s.uriOf(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	at, held := slices.BinarySearch(s.uris, uri)
	if held {
		s.uris = slices.Delete(s.uris, at, at+1)
	}
	s.mu.Unlock()
	if held {
		s.session.streams.Give(sizeOf(uri))
	}
	if member, err := s.join(); err == nil {
		member.Remove(uri)
	}
	return nil
}

func (s *subscriptions) uriOf(m *wire.Message) (string, error) {
	if !s.session.offered.Subscribe {
		return "", wire.Errorf(spec.CodeMethodNotFound, "server %q has no subscriptions to resources", s.session.front.opts.Name)
	}
	uri, ok := wire.GetString(m.Params, "uri")
	if !ok || uri == "" {
		return "", wire.Errorf(spec.CodeInvalidParams, "params lack uri, a string")
	}
	return uri, nil
}

// markAll marks all subscribed topics as changed, because it is unknown what the client
// missed.
func (s *subscriptions) markAll() {
	s.mu.Lock()
	all := s.lists
	all.URIs, all.Losses = slices.Clone(s.uris), false
	s.mu.Unlock()
	if len(all.Topics("")) == 0 {
		return
	}
	_, _ = s.join() // which knows the scope, even if it fails
	for _, t := range all.Topics(s.scope) {
		s.mail.Put(fanout.Event{Topic: t})
	}
}

// endReason returns why no more changes will come.
func (s *subscriptions) endReason() string {
	if reason, _ := s.mail.Ended(); reason != nil {
		return reason.Error()
	}
	return mcp.ErrShutdown.Error()
}

// close ends the subscriptions.
func (s *subscriptions) close() {
	s.joined.Do(func() { s.err = errSessionEnded })
	if s.subscription != nil {
		s.subscription.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uris, s.closed = nil, true
}

// changes returns where the changes for a stream come from.
func (s *subscriptions) changes() *eventstream.Changes {
	o := &s.session.front.opts
	return &eventstream.Changes{Mail: s.mail, Append: s.appendChange, Delivered: func() { o.Metrics.Delivered(o.Name, 1) }}
}

// appendChange appends the notification of ev; nothing if the client does not want it.
func (s *subscriptions) appendChange(dst []byte, ev fanout.Event) []byte {
	switch {
	case ev.Topic.Kind != fanout.StateLost:
		return appendChange(dst, ev)
	case ev.IsMessage():
		return s.appendMessage(dst, ev.Meta)
	case ev.URI == fanout.LeftOut:
		s.session.front.drop("slow caller")
		return s.appendWarning(dst, s.session.front.opts.Name, "log messages are left out here: they came faster than they were read")
	}
	return s.appendLoss(dst, ev.URI)
}

// appendMessage appends a log message of a server that belongs to no call.
//
// Spec: 2025-11-25, server/utilities/logging, Log Message Notifications.
func (s *subscriptions) appendMessage(dst []byte, params []byte) []byte {
	level, _ := wire.GetString(params, "level")
	if !s.wants(spec.LogLevel(level)) {
		return dst
	}
	n := projection.Notification(s.session.revision, mcp.Notification{Method: spec.NotifyMessage, Params: params})
	return wire.AppendNotification(dst, n.Method, n.Params, nil)
}

// wants reports whether the client wants log messages of a level.
func (s *subscriptions) wants(level spec.LogLevel) bool {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	return s.session.level.Allows(level)
}

// appendLoss appends the log message that says that a server may have lost what it had of the
// client; server is empty if several may have.
func (s *subscriptions) appendLoss(dst []byte, server string) []byte {
	text := "several servers have other sessions with this client than before"
	if server != "" {
		text = fmt.Sprintf("server %q has another session with this client than before", server)
	}
	text += ": what the former one knew may be lost; subscriptions were made again, and what may have changed was told"
	return s.appendWarning(dst, cmp.Or(server, s.session.front.opts.Name), text)
}

// appendWarning appends a log message of the gateway itself.
func (s *subscriptions) appendWarning(dst []byte, logger, text string) []byte {
	if !s.wants(spec.LogWarning) {
		return dst
	}
	params := wire.AppendEdited(nil, nil,
		wire.Edit{Name: "level", Value: wire.Quote(string(spec.LogWarning))},
		wire.Edit{Name: "logger", Value: wire.Quote(logger)},
		wire.Edit{Name: "data", Value: wire.Quote(text)})
	return wire.AppendNotification(dst, spec.NotifyMessage, params, nil)
}

// appendChange appends the notification of ev for a legacy client.
func appendChange(dst []byte, ev fanout.Event) []byte {
	var params []byte
	switch meta := (wire.Edit{Name: "_meta", Value: ev.Meta}); {
	case ev.Topic.Kind == fanout.ResourceUpdated:
		params = wire.AppendEdited(nil, nil, wire.Edit{Name: "uri", Value: wire.Quote(ev.URI)}, meta)
	case ev.Meta != nil:
		params = wire.AppendEdited(nil, nil, meta)
	}
	return wire.AppendNotification(dst, mcp.ChangeMethod(ev.Topic.Kind), params, nil)
}
