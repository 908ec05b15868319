package group

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxRemembered bounds the lists of which something is remembered.
	maxRemembered = 4096
	// storeAgain is when a list is stored again that has not changed, so that it does not
	// become too old.
	storeAgain = 6 * time.Hour
)

// remembered has what members listed, also those that are away now: their names, and, where there
// is a [Memory], whole lists of earlier runs. Safe for concurrent use.
type remembered struct {
	memory Memory // nil for none
	sets   *lru.Cache[listKey, *owners.Names]
	seed   maphash.Seed
	stored *lru.Cache[listKey, stored] // what memory has
}

// A stored is a list that was stored.
type stored struct {
	sum uint64
	at  time.Time
}

// A listKey identifies a list as clients of a principal with certain capabilities see it. Their
// sessions come and go.
type listKey [sha256.Size]byte

func keyOf(member string, req *mcp.Request, method string) (k listKey) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %q %s", member, method, req.Principal, req.Profile.Capabilities) // writing to a hash never fails
	h.Sum(k[:0])
	return k
}

func newRemembered(memory Memory) (*remembered, error) {
	r := &remembered{memory: memory, seed: maphash.MakeSeed()}
	var err error
	if r.sets, err = lru.New[listKey, *owners.Names](maxRemembered); err != nil {
		return nil, err
	}
	r.stored, err = lru.New[listKey, stored](maxRemembered)
	return r, err
}

// recall returns the items of a list of an earlier run; nil if they are not remembered.
func (r *remembered) recall(member string, req *mcp.Request, method string) []byte {
	if r.memory == nil {
		return nil
	}
	return r.memory.Recall(member, req, method)
}

// remember stores the items of a list for later runs, unless they are stored.
func (r *remembered) remember(member string, req *mcp.Request, l list, res *mcp.Result) {
	if r.memory == nil {
		return
	}
	k, sum := keyOf(member, req, l.method), maphash.Bytes(r.seed, res.Body)
	if had, ok := r.stored.Get(k); ok && had.sum == sum && time.Since(had.at) < storeAgain {
		return
	}
	if items := res.Outline.Get(res.Body, l.array); wire.IsArray(items) {
		r.memory.Remember(member, req, l.method, items)
		r.stored.Add(k, stored{sum, time.Now()})
	}
}

// learn remembers the names of a list.
func (r *remembered) learn(member string, req *mcp.Request, method string, s *owners.Names) {
	r.sets.Add(keyOf(member, req, method), s)
}

// names returns the names that a member had; nil if they are not remembered.
func (r *remembered) names(member string, req *mcp.Request, l list) *owners.Names {
	if s, ok := r.sets.Get(keyOf(member, req, l.method)); ok {
		return s
	}
	items := r.recall(member, req, l.method)
	if items == nil {
		return nil
	}
	var names []string
	for _, v := range wire.NamedElements(items, l.name) {
		if owners.IsName(v) {
			names = append(names, wire.Unquote(v))
		}
	}
	return owners.NewNames(names)
}
