package back

import (
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxTools bounds the tools that are remembered of a profile.
	maxTools = 16 << 10
	// maxPages bounds the pages of a list that the gateway reads for itself.
	maxPages = 1000
)

// A toolbox remembers which of a profile's tools must be run as a task. It learns
// from lists that pass by. Safe for concurrent use.
type toolbox struct {
	turn chan struct{} // capacity 1: who has put something in reads the whole list

	// mu guards the fields below. It is held for map work only.
	mu    sync.Mutex
	tasks map[string]bool // by name: must be run as a task
	whole bool            // all tools are known
	news  int             // counts what was heard of changes
}

func newToolbox() *toolbox {
	return &toolbox{turn: make(chan struct{}, 1), tasks: make(map[string]bool)}
}

// lookup reports whether a tool must be run as a task, and whether that is known.
func (b *toolbox) lookup(name string) (task, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	task, known = b.tasks[name]
	return task, known || b.whole
}

// learn takes in a page of tools/list.
func (b *toolbox) learn(page []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for tool := range wire.Elements(wire.Get(page, "tools")) {
		name, ok := wire.GetString(tool, "name")
		if !ok || len(b.tasks) >= maxTools {
			continue
		}
		support, _ := wire.GetString(wire.Get(tool, "execution"), "taskSupport")
		b.tasks[name] = support == "required"
	}
}

// forget says that the tools have changed.
func (b *toolbox) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.news++
	b.whole = false
	clear(b.tasks)
}

func (b *toolbox) heard() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.news
}

// know says that the list was read to its end, which began when so much was
// heard.
func (b *toolbox) know(news int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whole = b.news == news
}

// needsTask reports whether a request is a call of a tool that must be run as a
// task. If that is not known it reads the list of tools; if it can't be known the
// call goes out as it is, and the server says what is wrong.
//
// Spec: 2025-11-25, basic/utilities/tasks, Tool-Level Negotiation.
func (s *session) needsTask(ctx context.Context, req *mcp.Request) bool {
	if !s.caps.TaskCalls || req.Method != spec.MethodToolsCall {
		return false
	}
	name, ok := wire.GetString(req.Params, "name")
	if !ok {
		return false
	}
	task, known := s.tools.lookup(name)
	if known {
		return task
	}
	select {
	case s.tools.turn <- struct{}{}:
		defer func() { <-s.tools.turn }()
	case <-ctx.Done():
		return false
	}
	if task, known = s.tools.lookup(name); known {
		return task
	}
	s.readTools(ctx)
	task, _ = s.tools.lookup(name)
	return task
}

// readTools reads the whole list of tools.
func (s *session) readTools(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeouts.Request)
	defer cancel()
	news := s.tools.heard()
	for page, err := range s.pages(ctx, spec.MethodToolsList) {
		if err != nil {
			s.log.Warn("reading the list of tools, to know which must be run as a task", "error", cause(err))
			return
		}
		s.tools.learn(page)
	}
	s.tools.know(news)
}
