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

// maxRecalled bounds the scopes for which is stored whether they got a stored description,
// or one of the server.
const maxRecalled = 1024

// A Memory stores descriptions of a server between runs. What implements it must be safe for
// concurrent use: a verdict is stored by the goroutine that probes, while the goroutines of
// requests recall and store descriptions, and the verdict as well.
type Memory interface {
	// Era returns the server's era; spec.Unknown if it is not stored.
	Era() spec.Era
	// Recall returns the server's description for a client with the capabilities of req;
	// nil if it is not stored.
	Recall(req *mcp.Request) *mcp.Description
	// Found stores the verdict.
	Found(era spec.Era)
	// Described stores the server's description for such a client, as one of an era. It
	// returns the names of what differs from the stored description.
	Described(req *mcp.Request, era spec.Era, d *mcp.Description) (differs []string)
}

// A recall answers server/discover with a stored description, until the server has
// responded in this run or something has failed.
type recall struct {
	d      *Detector
	memory Memory

	// mu guards the fields below. It is held for map work only.
	mu        sync.Mutex
	answered  *lru.Cache[string, *mcp.Description] // the stored description that a scope got
	confirmed *lru.Cache[string, struct{}]         // scopes with a description of this run
	off       bool                                 // the server could not be started or probed
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

// describe returns a stored description, nil if the server has to be asked. For the first
// request of a scope it also asks the server in the background.
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

// verify gets the description from the server.
func (r *recall) verify(req *mcp.Request) {
	ctx, cancel := context.WithTimeout(r.d.live, r.d.opts.Patience)
	defer cancel()
	if _, err := r.d.describe(ctx, req); err != nil && r.d.live.Err() == nil {
		r.d.log.Warn("clients got the description of an earlier run, and the server can't be reached", "error", err)
		r.failed()
	}
}

// described stores a description of the server. If it differs from the one that the scope
// got before, subscribers get changes of all lists. Nothing is stored if the era is a
// guess.
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
	r.d.log.Info("server has changed since an earlier run", "differs", differs)
	if r.d.opts.Changes == nil {
		return
	}
	for _, kind := range []fanout.Kind{fanout.ToolsListChanged, fanout.PromptsListChanged, fanout.ResourcesListChanged} {
		r.d.opts.Changes.Publish(fanout.Event{Topic: fanout.Topic{Scope: scope, Kind: kind}})
	}
}

// failed stops the use of stored descriptions.
func (r *recall) failed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = true
}
