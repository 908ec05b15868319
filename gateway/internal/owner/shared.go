package owner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// sharedTTL is how long all replicas know whose a task is.
	sharedTTL = 24 * time.Hour
	// sharedTimeout bounds storing and looking up one.
	sharedTimeout = time.Second
)

// Records are what all replicas of the gateway know.
type Records interface {
	Put(ctx context.Context, key string, record []byte, ttl time.Duration) error
	// Get returns a record, or an error that is one of Unknown if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
}

// A Shared is where a Guard stores whose tasks are, and finds those of other replicas.
type Shared struct {
	Records Records
	// Unknown are the errors of Get that say that there is no record. After all others a
	// request about the task is refused.
	Unknown []error
}

// note stores that a task belongs to a share's principal, here and for other replicas. It
// returns before the client can name the task.
func (g *Guard) note(ctx context.Context, share mcp.Share, id string) {
	g.tasks.note(share, id)
	if g.shared == nil {
		return
	}
	if err := g.telling.tell(context.WithoutCancel(ctx), keyOfTask(id), share.Principal); err != nil {
		g.unshared(err)
	}
}

// isForeign reports whether a task belongs to another principal. The record of one that was
// created at another replica is looked up once.
func (g *Guard) isForeign(ctx context.Context, share mcp.Share, id string) (bool, error) {
	if g.shared == nil || g.tasks.knows(id) {
		return g.tasks.ownedByOther(share.Principal, id), nil
	}
	ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
	defer cancel()
	owner, err := g.shared.Records.Get(ctx, g.recordOf(keyOfTask(id)))
	if g.isUnknown(err) {
		return false, nil // as without replicas: the server decides
	}
	if err != nil {
		return true, mcp.RefuseForNow("it is not known at the moment whose task this is; try again")
	}
	if string(owner) != g.digestOf(share.Principal) {
		return true, nil
	}
	g.tasks.note(share, id)
	return false, nil
}

// isUnknown reports whether an error says that there is no record.
func (g *Guard) isUnknown(err error) bool {
	return slices.ContainsFunc(g.shared.Unknown, func(unknown error) bool { return errors.Is(err, unknown) })
}

// recordOf returns what the record of a task is called: the id grants access to it.
func (g *Guard) recordOf(key taskKey) string {
	return "task " + g.server + " " + hex.EncodeToString(key[:])
}

// digestOf returns what a record says of a principal, which may be a secret.
func (g *Guard) digestOf(p mcp.Principal) string {
	sum := sha256.Sum256(wire.AppendString(wire.Quote(g.server), string(p)))
	return hex.EncodeToString(sum[:])
}
