package group

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// learn has lists of all members known, those of methods, that are not, or were read long ago.
// Members are asked at the same time, as the client that has sent req, and not longer than
// patience.
func (b *Back) learn(ctx context.Context, patience time.Duration, req *mcp.Request, methods ...string) {
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var asking sync.WaitGroup
	for i := range b.opts.Members {
		for _, method := range methods {
			if k := knownAt(&req.Profile, b.opts.Members[i].Name, method); b.where.isDue(k) {
				asking.Go(func() { b.learnList(ctx, short, req, i, k) }) // ends with short at the latest
			}
		}
	}
	asking.Wait()
}

// learnList has one list known. client is the context of the client that wants to know it, and
// ends with it at the latest.
func (b *Back) learnList(client, ctx context.Context, req *mcp.Request, i int, k knownKey) {
	for {
		wait, due := b.where.begin(k)
		switch {
		case !due:
			return
		case wait == nil:
			b.where.end(k, !b.readList(ctx, req, i, k.method) && client.Err() == nil)
			return
		}
		select {
		case <-wait: // its reader may have left
		case <-ctx.Done():
			return
		}
	}
}

// readList reads all pages of a list of a member, which are remembered, and reports whether it
// could. If not, and nothing is known of it, what the member had in an earlier run will do.
func (b *Back) readList(ctx context.Context, req *mcp.Request, i int, method string) bool {
	r := b.readerOf(req, method)
	out := r.read(ctx, place{member: i})
	if out.err == nil {
		return true
	}
	if l := b.where.get(knownAt(&req.Profile, b.opts.Members[i].Name, method)); !l.known && r.recall(out) {
		out.err = nil
		b.noteReading(req, out)
	}
	return false
}

// noteReading remembers what members list, for a client that has read it, or some of it.
func (b *Back) noteReading(req *mcp.Request, r *reading) {
	if r.err != nil || r.kind == policy.Prompt {
		return
	}
	var all found
	whole := r.cursor == "" && r.next() == ""
	for _, p := range r.pages {
		if all = all.and(p.found); !whole && r.method == spec.MethodResourcesList {
			for _, it := range p.items {
				b.handedOut(&req.Profile, r.member, it.name)
			}
		}
		for _, uri := range p.apps {
			b.handedOut(&req.Profile, r.member, uri)
		}
	}
	if whole {
		b.where.set(knownAt(&req.Profile, b.opts.Members[r.member].Name, r.method), all)
	}
}

// look returns what of a page of a list is remembered, and the URIs of apps that it hands out.
func (b *Back) look(l list, items []item, array []byte) (f found, apps []string) {
	switch l.method {
	case spec.MethodResourcesList:
		f.names = make([]uint64, len(items))
		for i, it := range items {
			f.names[i] = b.where.digest("", it.name)
		}
	case spec.MethodResourcesTemplates:
		for _, it := range items {
			f.templates = append(f.templates, it.name)
		}
	case spec.MethodToolsList:
		if bytes.Contains(array, []byte(`"ui"`)) { // as few have
			return b.lookForApps(array)
		}
	}
	slices.Sort(f.names)
	return f, nil
}

// lookForApps is look for tools.
func (b *Back) lookForApps(array []byte) (f found, apps []string) {
	for text, v := range wire.NamedElements(array, memberName) {
		ui := wire.Get(wire.Get(text, "_meta"), "ui")
		if uri, ok := wire.GetString(ui, "resourceUri"); ok {
			apps = append(apps, uri)
		}
		if isForApps(ui) && isName(v) {
			f.names = append(f.names, b.where.digest("", wire.Unquote(v)))
		}
	}
	slices.Sort(f.names)
	return f, apps
}
