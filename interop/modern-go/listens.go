package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A filter is what a listen stream is to hear of.
type filter struct {
	Tools     bool     `json:"tools,omitempty"`
	Prompts   bool     `json:"prompts,omitempty"`
	Resources bool     `json:"resources,omitempty"`
	URIs      []string `json:"uris,omitempty"`
}

func filterOf(n *mcp.NotificationSubscriptions) *filter {
	return &filter{n.ToolsListChanged, n.PromptsListChanged, n.ResourcesListChanged, slices.Clone(n.ResourceSubscriptions)}
}

// A stream is an open subscriptions/listen.
type stream struct {
	name string // "stream 1" and so on, in the order of their arrival
	end  context.CancelFunc
	how  string // guarded by listens.mu: graceful or abrupt once the server has ended it
	done chan struct{}

	// Guarded by listens.mu, and nil before the acknowledgment.
	session *mcp.ServerSession
	id      any // subscriptionId
	granted *filter
}

// listens are the open listen streams. Safe for concurrent use.
type listens struct {
	// mu guards the fields below, and those of the streams.
	mu    sync.Mutex
	count int
	open  []*stream
}

type streamKey struct{}

// enter makes a stream, and a context that ends with it.
func (l *listens) enter(ctx context.Context) (context.Context, *stream) {
	ctx, end := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	s := &stream{name: fmt.Sprintf("stream %d", l.count), end: end, done: make(chan struct{})}
	l.open = append(l.open, s)
	return context.WithValue(ctx, streamKey{}, s), s
}

// leave forgets a stream and returns how the server ended it, if it did.
func (l *listens) leave(s *stream) (how string) {
	s.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(o *stream) bool { return o == s })
	close(s.done)
	return s.how
}

// end ends all streams, waits for their handlers, and returns how many there
// were. A stream that abrupt does not end first has a result.
func (l *listens) end(abrupt func()) int {
	how := "graceful"
	if abrupt != nil {
		how = "abrupt"
	}
	l.mu.Lock()
	ended := slices.Clone(l.open)
	for _, s := range ended {
		s.how = how
	}
	l.mu.Unlock()
	if abrupt != nil {
		abrupt()
	}
	for _, s := range ended {
		s.end()
		<-s.done
	}
	return len(ended)
}

// granted marks the stream of ctx as acknowledged.
func (l *listens) granted(ctx context.Context, ss *mcp.ServerSession, p *mcp.SubscriptionsAcknowledgedParams) {
	s, ok := ctx.Value(streamKey{}).(*stream)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.session, s.id, s.granted = ss, p.Meta[mcp.MetaKeySubscriptionID], filterOf(&p.Notifications)
}

// named returns the name of the stream on which a notification goes out.
func (l *listens) named(ss *mcp.ServerSession, params mcp.Params) string {
	id, ok := params.GetMeta()[mcp.MetaKeySubscriptionID]
	if !ok {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.open {
		if s.session == ss && s.id == id {
			return s.name
		}
	}
	return "unknown"
}

// subscriptions are the acknowledged streams that are open.
type subscriptions struct {
	PID     int                `json:"pid"`
	Streams map[string]*filter `json:"streams"`
	URIs    map[string]int     `json:"uris"`  // streams per URI
	Total   int                `json:"total"` // pairs of stream and URI
}

func (l *listens) subscriptions(pid int) subscriptions {
	all := subscriptions{PID: pid, Streams: map[string]*filter{}, URIs: map[string]int{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.open {
		if s.granted == nil {
			continue
		}
		all.Streams[s.name] = s.granted
		for _, uri := range s.granted.URIs {
			all.URIs[uri]++
			all.Total++
		}
	}
	return all
}

// noteListen writes down each listen stream and its end, and narrows what it may
// hear of by the refusals.
func (b *board) noteListen(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		p, ok := req.GetParams().(*mcp.SubscriptionsListenParams)
		if !ok || p.Notifications == nil {
			return next(ctx, method, req)
		}
		refused, err := b.refused(p.Notifications.ResourceSubscriptions)
		if err != nil {
			return nil, err
		}
		ctx, s := b.listens.enter(ctx)
		b.ledger.add(entry{What: "listen", Stream: s.name, Filter: filterOf(p.Notifications)})
		for _, uri := range refused {
			b.ledger.add(entry{What: "refuse", Stream: s.name, URI: uri})
		}
		p.Notifications.ResourceSubscriptions = slices.DeleteFunc(p.Notifications.ResourceSubscriptions,
			func(uri string) bool { return slices.Contains(refused, uri) })
		res, err := next(ctx, method, req)
		e := entry{What: "ended", Stream: s.name, Kind: b.listens.leave(s)}
		if err != nil {
			e.Err = err.Error()
		}
		b.ledger.add(e)
		return res, err
	}
}

// noteSent writes down every notification after it was sent, with what became of
// it; what concerns no listen stream has no stream.
func (b *board) noteSent(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, ok := req.GetSession().(*mcp.ServerSession)
		if !ok || !strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		e := entry{What: "sent", Method: method}
		switch p := req.GetParams().(type) {
		case *mcp.SubscriptionsAcknowledgedParams:
			b.listens.granted(ctx, ss, p)
			e.Filter = filterOf(&p.Notifications)
		case *mcp.ResourceUpdatedNotificationParams:
			e.URI = p.URI
		}
		e.Stream = b.listens.named(ss, req.GetParams())
		res, err := next(ctx, method, req)
		if err != nil {
			e.What, e.Err = "unsent", err.Error()
		}
		b.ledger.add(e)
		return res, err
	}
}
