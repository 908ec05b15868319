package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	itemCount = 60 // unless -items says otherwise
	pageSize  = 2
)

// A board is the server's state: what it serves, in which version, and who asked
// to hear of it.
type board struct {
	// Set by newBoard, read-only after.
	server *mcp.Server
	ledger *ledger
	refuse string // file of the URIs that can't be subscribed to; may be empty

	// mu guards the fields below.
	mu       sync.Mutex
	versions map[string]int
	subs     map[*mcp.ServerSession]map[string]bool
	labels   map[*mcp.ServerSession]string
}

func newBoard(l *ledger, refuse string, items int) *board {
	b := &board{
		ledger:   l,
		refuse:   refuse,
		versions: make(map[string]int),
		subs:     make(map[*mcp.ServerSession]map[string]bool),
		labels:   make(map[*mcp.ServerSession]string),
	}
	b.server = mcp.NewServer(&mcp.Implementation{Name: "legacy-go", Version: "1"}, &mcp.ServerOptions{
		PageSize:           pageSize,
		SubscribeHandler:   b.subscribe,
		UnsubscribeHandler: b.unsubscribe,
	})
	b.server.AddSendingMiddleware(b.note)
	for i := range items {
		uri := itemURI(i)
		b.versions[uri] = max(l.former[uri], 1)
		b.server.AddResource(&mcp.Resource{URI: uri, Name: fmt.Sprintf("item %02d", i), MIMEType: "text/plain"}, b.read)
	}
	b.addPrompt()
	b.addTools()
	return b
}

func itemURI(i int) string { return fmt.Sprintf("res://item/%02d", i) }

func (b *board) read(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	b.mu.Lock()
	version := b.versions[req.Params.URI]
	b.mu.Unlock()
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
		{URI: req.Params.URI, MIMEType: "text/plain", Text: "version " + strconv.Itoa(version)},
	}}, nil
}

// touch makes a new version of each URI, so many times, and tells subscribers of
// every one.
func (b *board) touch(ctx context.Context, uris []string, times int) ([]entry, error) {
	for _, uri := range uris {
		if !b.has(uri) {
			return nil, fmt.Errorf("no such resource: %s", uri)
		}
	}
	var touched []entry
	for range max(times, 1) {
		for _, uri := range uris {
			// The version before the news of it: who reads on hearing sees it.
			b.mu.Lock()
			b.versions[uri]++
			version := b.versions[uri]
			b.mu.Unlock()
			touched = append(touched, b.ledger.add(entry{What: "touch", URI: uri, Version: version}))
			if err := b.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
				return touched, err
			}
		}
	}
	return touched, nil
}

func (b *board) has(uri string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.versions[uri] > 0
}

func (b *board) subscribe(_ context.Context, req *mcp.SubscribeRequest) error {
	uri, who := req.Params.URI, b.label(req.Session)
	refused, err := b.refuses(uri)
	if err != nil {
		return err
	}
	if refused || !b.has(uri) {
		b.ledger.add(entry{What: "refuse", URI: uri, Session: who})
		return fmt.Errorf("no subscription to %s", uri)
	}
	b.mu.Lock()
	if b.subs[req.Session] == nil {
		b.subs[req.Session] = make(map[string]bool)
	}
	b.subs[req.Session][uri] = true
	b.mu.Unlock()
	b.ledger.add(entry{What: "subscribe", URI: uri, Session: who})
	return nil
}

func (b *board) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	who := b.label(req.Session)
	b.mu.Lock()
	delete(b.subs[req.Session], req.Params.URI)
	b.mu.Unlock()
	b.ledger.add(entry{What: "unsubscribe", URI: req.Params.URI, Session: who})
	return nil
}

// refuses looks uri up in the file of refusals.
func (b *board) refuses(uri string) (bool, error) {
	if b.refuse == "" {
		return false, nil
	}
	f, err := os.Open(b.refuse)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == uri {
			return true, nil
		}
	}
	return false, lines.Err()
}

// note writes down every notification after it was sent, with what became of it.
func (b *board) note(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		s, ok := req.GetSession().(*mcp.ServerSession)
		if !ok || !strings.HasPrefix(method, "notifications/") {
			return res, err
		}
		e := entry{What: "sent", Method: method, Session: b.label(s)}
		if p, ok := req.GetParams().(*mcp.ResourceUpdatedNotificationParams); ok {
			e.URI = p.URI
		}
		if err != nil {
			e.What, e.Err = "unsent", err.Error()
		}
		b.ledger.add(e)
		return res, err
	}
}

// label names a session by the order in which sessions were first seen: their
// own ids grant access, and stdio has none.
func (b *board) label(s *mcp.ServerSession) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.labels[s] == "" {
		b.labels[s] = "session " + strconv.Itoa(len(b.labels)+1)
	}
	return b.labels[s]
}

// subscriptions counts those of sessions that have not ended.
type subscriptions struct {
	PID      int                 `json:"pid"`
	Total    int                 `json:"total"`    // pairs of session and URI
	URIs     map[string]int      `json:"uris"`     // sessions per URI
	Sessions map[string][]string `json:"sessions"` // URIs per session, those without any included
}

func (b *board) subscriptions() subscriptions {
	live := slices.Collect(b.server.Sessions())
	for _, s := range live {
		b.label(s)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.subs, func(s *mcp.ServerSession, _ map[string]bool) bool { return !slices.Contains(live, s) })
	all := subscriptions{PID: os.Getpid(), URIs: map[string]int{}, Sessions: map[string][]string{}}
	for _, s := range live {
		uris := slices.Sorted(maps.Keys(b.subs[s]))
		all.Sessions[b.labels[s]] = append([]string{}, uris...)
		all.Total += len(uris)
		for _, uri := range uris {
			all.URIs[uri]++
		}
	}
	return all
}

// log logs outside of calls, in all sessions: the SDK sends it to those whose client has set a
// level, of that level.
func (b *board) log(ctx context.Context, level, text string) error {
	for s := range b.server.Sessions() {
		if err := s.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(level), Logger: "board", Data: text}); err != nil {
			return err
		}
	}
	return nil
}
