package group

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
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
	// restAgain is when a list of several pages is read as a whole again, to be remembered, and
	// maxRest bounds how many are at a time. maxItems bounds the items of one, in bytes.
	restAgain = 10 * time.Minute
	maxRest   = 4
	maxItems  = 1 << 20
)

// remembered has what members listed, also those that are away now: their names, and, where there
// is a [Memory], whole lists of earlier runs. Safe for concurrent use.
type remembered struct {
	memory Memory // nil for none
	sets   *lru.Cache[listKey, *owners.Names]
	seed   maphash.Seed
	stored *lru.Cache[listKey, stored] // what memory has
	// Lists of several pages that are read as a whole, to be remembered: when, and how many are.
	rest    *lru.Cache[listKey, time.Time]
	reading atomic.Int64

	answered sync.Map // by member: from when on it counts as one that has answered to a list in this process
}

// hear notes that a member counts from a time on as one that has answered to a list.
func (r *remembered) hear(member string, from time.Time) {
	if at, had := r.answered.LoadOrStore(member, from); had && from.Before(at.(time.Time)) {
		r.answered.Store(member, from)
	}
}

// heard reports whether a member counts as one that has answered to a list in this process.
func (r *remembered) heard(member string) bool {
	from, had := r.answered.Load(member)
	return had && !time.Now().Before(from.(time.Time))
}

// A stored is a list that was stored.
type stored struct {
	sum uint64
	at  time.Time
}

// A listKey identifies a list as clients of a principal with certain capabilities see it. Their
// sessions come and go.
type listKey [sha256.Size]byte

func keyOf(member string, req *mcp.Request, method string) listKey {
	text := make([]byte, 0, 512)
	for _, s := range []string{member, method, string(req.Principal)} {
		text = append(binary.AppendUvarint(text, uint64(len(s))), s...)
	}
	return sha256.Sum256(append(text, req.Profile.Capabilities...))
}

func newRemembered(memory Memory) (*remembered, error) {
	r := &remembered{memory: memory, seed: maphash.MakeSeed()}
	var err error
	if r.sets, err = lru.New[listKey, *owners.Names](maxRemembered); err != nil {
		return nil, err
	}
	if r.rest, err = lru.New[listKey, time.Time](maxRemembered); err != nil {
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

// remembers reports whether lists are stored for later runs.
func (r *remembered) remembers() bool { return r.memory != nil }

// remember stores the items of a whole list for later runs, unless they are stored. They are an array,
// which is found in text only if that has changed.
func (r *remembered) remember(member string, req *mcp.Request, method string, text []byte, items func(text []byte) []byte) {
	k, sum := keyOf(member, req, method), maphash.Bytes(r.seed, text)
	if had, ok := r.stored.Get(k); ok && had.sum == sum && time.Since(had.at) < storeAgain {
		return
	}
	if found := items(text); wire.IsArray(found) {
		r.memory.Remember(member, req, method, found)
		r.stored.Add(k, stored{sum, time.Now()})
	}
}

// askRest reports whether the caller is to read a list of several pages as a whole. It then takes one
// from reading.
func (r *remembered) askRest(member string, req *mcp.Request, method string) bool {
	if r.memory == nil {
		return false
	}
	k := keyOf(member, req, method)
	if at, ok := r.rest.Get(k); ok && time.Since(at) < restAgain {
		return false
	}
	if r.reading.Add(1) > maxRest {
		r.reading.Add(-1)
		return false // the next client's list has it read
	}
	r.rest.Add(k, time.Now())
	return true
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
