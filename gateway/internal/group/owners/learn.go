package owners

import (
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A ReadList reads a list of the member at a place, and has it [URIs.Listed], until ctx ends. It
// reports whether it could.
type ReadList func(ctx context.Context, place int, method string) bool

// Learn has lists of all members known, those of methods, that are not, or were read long ago.
// Members are asked at the same time, until ctx ends; client is the context of the client that
// wants to know, and ends with it at the latest. A list is read once for all that want it, twice if it changes meanwhile.
func (m *URIs) Learn(client, ctx context.Context, p *mcp.Profile, members []string, methods []string, read ReadList) {
	var asking sync.WaitGroup
	for i, name := range members {
		for _, method := range methods {
			if k := knownAt(p, name, method); m.isDue(k) {
				asking.Go(func() { m.learn(client, ctx, k, i, read) }) // ends with ctx at the latest
			}
		}
	}
	asking.Wait()
}

// learn has one list known.
func (m *URIs) learn(client, ctx context.Context, k knownKey, place int, read ReadList) {
	for waits := 0; ; waits++ {
		if waits == 2 && m.get(k).known {
			return // the second reading began after this call, and what changes all the time is read no more often
		}
		wait, due := m.begin(k)
		switch {
		case !due:
			return
		case wait == nil:
			m.end(k, !read(ctx, place, k.method) && client.Err() == nil)
			return
		}
		select {
		case <-wait: // its reader may have left
		case <-ctx.Done():
			return
		}
	}
}
