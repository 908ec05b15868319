package detect

import (
	"context"
	"errors"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// maxRecalled bounds the scopes of which it is known whether they were told what is
// remembered, or what the server said in this run.
const maxRecalled = 1024

// A Memory keeps what a server said of itself from one run to the next. Its methods are
// safe for concurrent use.
type Memory interface {
	// Era returns the era that the server was of; spec.Unknown if that is not known.
	Era() spec.Era
	// Recall returns what the server said of itself to a client of these capabilities;
	// nil if that is not known.
	Recall(req *mcp.Request) *mcp.Description
	// Found keeps the verdict on the server.
	Found(era spec.Era)
	// Described keeps what the server said of itself to such a client, as one of an era, and
	// names what of that is not as it was remembered.
	Described(req *mcp.Request, era spec.Era, d *mcp.Description) (differs []string)
}

// A recall answers server/discover from what a server said in an earlier run, as long as
// it has not said anything in this one and nothing has failed.
type recall struct {
	d      *Detector
	memory Memory

	// mu guards the fields below. It is held for map work only.
	mu        sync.Mutex
	answered  *lru.Cache[string, *mcp.Description] // what a scope was told from memory
	confirmed *lru.Cache[string, struct{}]         // scopes that the server has answered
	off       bool                                 // the server could not be started, or asked
}

func newRecall(d *Detector) (*recall, error) {
	answered, err := lru.New[string, *mcp.Description](maxRecalled)
	if err != nil {
		return nil, err
	}
	confirmed, err := lru.New[string, struct{}](maxRecalled)
	if err != nil {
		return nil, err
	}
	return &recall{d: d, memory: d.opts.Memory, answered: answered, confirmed: confirmed}, nil
}

// describe returns what is remembered, nil if the server itself is to say it. The first
// of a scope has the server asked meanwhile.
func (r *recall) describe(req *mcp.Request) *mcp.Description {
	scope := req.Profile.Scope
	if err := r.d.Err(); err != nil && !errors.Is(err, mcp.ErrStarting) {
		r.failed()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off || r.confirmed.Contains(scope) {
		return nil
	}
	if known, ok := r.answered.Get(scope); ok {
		return known
	}
	known := r.memory.Recall(req)
	if known == nil {
		return nil
	}
	r.answered.Add(scope, known)
	r.d.running.Go(func() { r.verify(req) }) // ends by its time-out, or with the Detector
	return known
}

// verify asks the server what was told in its place.
func (r *recall) verify(req *mcp.Request) {
	ctx, cancel := context.WithTimeout(r.d.live, r.d.opts.Patience)
	defer cancel()
	if _, err := r.d.describe(ctx, req); err != nil && r.d.live.Err() == nil {
		r.d.log.Warn("clients were told what the server said in an earlier run, and it can't be reached", "error", err)
		r.failed()
	}
}

// described takes what the server has said of itself. Where it is not what was remembered,
// those who listen are told that the lists have changed. Nothing is remembered of a server
// whose era is a guess.
func (r *recall) described(req *mcp.Request, era spec.Era, d *mcp.Description, guess bool) {
	scope := req.Profile.Scope
	r.mu.Lock()
	given, _ := r.answered.Get(scope)
	first := !r.confirmed.Contains(scope)
	r.answered.Remove(scope)
	r.confirmed.Add(scope, struct{}{})
	r.mu.Unlock()
	if !first || guess {
		return
	}
	differs := r.memory.Described(req, era, d)
	r.memory.Found(era)
	if given == nil || len(differs) == 0 {
		return
	}
	r.d.log.Info("server is not what it was in an earlier run", "differs", differs)
	if r.d.opts.Changes == nil {
		return
	}
	for _, kind := range []fanout.Kind{fanout.ToolsListChanged, fanout.PromptsListChanged, fanout.ResourcesListChanged} {
		r.d.opts.Changes.Publish(fanout.Event{Topic: fanout.Topic{Scope: scope, Kind: kind}})
	}
}

// failed says that what is remembered is not to be relied on.
func (r *recall) failed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = true
}
