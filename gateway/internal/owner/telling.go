package owner

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// tellEvery is how often it is looked what the engine lacks.
const tellEvery = 2 * time.Second

// A telling has other replicas know whose the tasks of a Guard are. It puts each record, and once more
// after that: the engine may have been away, or replaced by a server that has not the last ones. Those
// that a Guard knows are put again if the engine has lost one. It is safe for concurrent use.
type telling struct {
	g       *Guard
	live    context.Context // ends with close
	stop    context.CancelFunc
	running sync.WaitGroup // the loop

	// mu guards the fields below, and the end of live. It is held for map work only; a leaf.
	mu      sync.Mutex
	due     *simplelru.LRU[taskKey, struct{}] // to be put; of too many, the oldest go
	witness *taskKey                          // was put: without it, the engine has lost others, too
	begun   bool
}

func newTelling(g *Guard) *telling {
	t := &telling{g: g}
	t.due, _ = simplelru.NewLRU[taskKey, struct{}](maxOwned, nil) // the size is positive
	t.live, t.stop = context.WithCancel(context.Background())
	return t
}

func (t *telling) close() {
	t.mu.Lock()
	t.stop()
	t.mu.Unlock()
	t.running.Wait()
}

// tell puts the record of a task, which is looked after from then on if the engine keeps any.
func (t *telling) tell(ctx context.Context, key taskKey, owner mcp.Principal) error {
	err := t.put(ctx, key, owner)
	if err == nil || !t.g.isUnknown(err) {
		t.add(key)
	}
	return err
}

func (t *telling) put(ctx context.Context, key taskKey, owner mcp.Principal) error {
	ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
	defer cancel()
	return t.g.shared.Records.Put(ctx, t.g.recordOf(key), []byte(t.g.digestOf(owner)), sharedTTL)
}

// add has records put with the next look.
func (t *telling) add(keys ...taskKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		t.due.Add(key, struct{}{})
	}
	if !t.begun && t.live.Err() == nil {
		t.begun = true
		t.running.Go(t.run) // ends with close
	}
}

func (t *telling) run() {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.look()
		case <-t.live.Done():
			return
		}
	}
}

// look puts what is due, the latest first. If the engine does not answer, the rest is due the next time.
func (t *telling) look() {
	if t.hasLost() {
		t.add(t.g.tasks.since(time.Now().Add(-sharedTTL))...)
	}
	t.mu.Lock()
	due := t.due.Keys()
	t.mu.Unlock()
	for i := len(due) - 1; i >= 0; i-- {
		key := due[i]
		owner, known := t.g.tasks.ownerOf(key)
		if known && t.put(t.live, key, owner) != nil {
			return
		}
		t.mu.Lock()
		t.due.Remove(key)
		if known {
			t.witness = &key
		}
		t.mu.Unlock()
	}
}

// hasLost reports, once for each time, whether the engine is there, and has not what was put.
func (t *telling) hasLost() bool {
	t.mu.Lock()
	witness := t.witness
	t.mu.Unlock()
	if witness == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(t.live, sharedTimeout)
	defer cancel()
	if _, err := t.g.shared.Records.Get(ctx, t.g.recordOf(*witness)); !t.g.isUnknown(err) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.witness = nil
	return true
}
