package front

import (
	"hash/maphash"

	lru "github.com/hashicorp/golang-lru/v2"
)

// maxCleanLists bounds the lists of tools that are known to need no repair.
const maxCleanLists = 1024

// cleanLists are lists of tools in which nothing had to be changed, as they came, so that the same
// again need not be read. Of each its hash is kept. It is safe for concurrent use.
type cleanLists struct {
	seed maphash.Seed
	seen *lru.Cache[uint64, struct{}]
}

func newCleanLists() (*cleanLists, error) {
	seen, err := lru.New[uint64, struct{}](maxCleanLists)
	return &cleanLists{maphash.MakeSeed(), seen}, err
}

// has reports whether a list is known to be clean, and returns what add takes.
func (c *cleanLists) has(list []byte) (hash uint64, clean bool) {
	hash = maphash.Bytes(c.seed, list)
	_, clean = c.seen.Get(hash)
	return hash, clean
}

func (c *cleanLists) add(hash uint64) { c.seen.Add(hash, struct{}{}) }
