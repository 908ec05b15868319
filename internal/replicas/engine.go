package replicas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

const (
	// Heartbeat is how often a replica tells that it lives, unless it is told another Pace.
	Heartbeat = time.Second
	// MemberTTL and ClaimMargin are Pace.TTL and Pace.Margin of a Heartbeat.
	MemberTTL   = 3 * Heartbeat
	ClaimMargin = Heartbeat / 2
	// MaxRecord bounds a record of Put, in bytes.
	MaxRecord = 512 << 10
	// MaxMember bounds the record of a replica with its instance, in bytes, MaxMembers how many
	// of them are known, and MaxClaim what is kept of a claim, in bytes. An engine skips what is
	// beyond: whoever else writes there may err.
	MaxMember  = 2 << 10
	MaxMembers = 1000
	MaxClaim   = 256

	// Prefix begins the names at an engine, unless another one is set.
	Prefix = "mcpbridge"

	// Revision is that of what this program understands of other replicas; 0 is the first. It
	// rises when a replica can be asked for something new: whoever asks looks at the other's
	// Revision, and does without if that is lower. What others may skip needs no revision.
	//
	// 1: the begin of an HTTP+SSE stream or a WebSocket is served for another replica.
	// 2: a heartbeat is written for another replica.
	// 3: a client is authenticated for a replica that has not the server, and TLS is told of.
	// 4: a replica says whether it holds a name.
	// 5: a request to a member of a group is served for another replica.
	Revision = 5
)

var (
	// ErrAway says that the engine can't be asked at this moment.
	ErrAway = errors.New("the engine of the replicas is away")
	// ErrNoClaims says that this engine knows of members alone.
	ErrNoClaims = errors.New("the replicas have no engine that keeps claims and records")
	// ErrNotFound says that no record has the key, or that another replica took it.
	ErrNotFound = errors.New("no such record")
	// ErrTooLarge says that a record is over MaxRecord.
	ErrTooLarge = errors.New("the record is larger than an engine keeps")
	// ErrGone says that a replica does not exist any more: another one answers in its place.
	ErrGone = errors.New("the replica is gone")
	// ErrUnasked says that it is not known whether another replica holds a name: not all have said
	// that they don't hear the engine, or answered the question.
	ErrUnasked = errors.New("not all other replicas have said whether one of them holds it")
	// ErrClosed says that Close was called.
	ErrClosed = errors.New("the engine of the replicas is closed")
)

// An AwayError says that a replica could not write the heartbeat of another one, since the engine is
// away for it, and which others it knows: one of them may hear the engine. It wraps ErrAway.
type AwayError struct {
	Knows []string // instances
	Err   error
}

func (e *AwayError) Error() string { return e.Err.Error() }

// Unwrap returns what has happened.
func (e *AwayError) Unwrap() error { return e.Err }

// A Replica is one process of the deployment.
type Replica struct {
	Instance string  // begins the ids of sessions, events and states; new with each start
	Addr     string  // host:port of the peer listener
	Version  string  // of the program
	Revision int     // of what it understands
	Draining bool    // it takes no new work
	Ready    bool    // it has found that it can serve with the others
	Servers  Servers // that it has, as far as that is known
	TLS      bool    // it serves others over TLS; since revision 3
	Pace     Pace    // of its heartbeats
}

// A Claim says who holds a name. The epoch rises with each change of the holder.
type Claim struct {
	Holder Replica
	Epoch  uint64
}

// A Named is a claim, and the [Key] of its name.
type Named struct {
	Key string
	Claim
}

// A Lister is an Engine that tells which names this replica wants, in order. The holder of
// one that nobody living holds is zero.
type Lister interface{ Claims() []Named }

// Neighbors are the other replicas as they are reached without the engine. Its methods may be
// called at the same time.
type Neighbors interface {
	// Greet returns nil if a replica answers at its address.
	Greet(ctx context.Context, to Replica) error
	// Tell asks another replica to write a heartbeat of this one at the engine. The error is
	// nil if it has, and wraps an AwayError if the other can't reach the engine either, or ErrGone.
	Tell(ctx context.Context, to Replica, record []byte) error
	// Ask asks another replica whether it holds the name of a [Key]. It returns the epoch of its
	// claim, zero if it does not hold it. The error wraps ErrGone if the other is gone; any other
	// is no answer.
	Ask(ctx context.Context, to Replica, key string) (epoch uint64, err error)
}

// An Engine keeps few small facts for all replicas. What it last said stands
// while it is away. All methods may be called at the same time.
type Engine interface {
	// Join begins the heartbeats. It asks the engine once, and returns nil even if that is
	// away: the engine is tried until Close.
	Join(ctx context.Context, self Replica) error
	// Update changes what is told of this replica, such as Draining: at once if the engine is
	// there. Before Join it only sets View().Self.
	Update(self Replica)
	// Leave tells that this replica ends, and gives up its claims. The view stands.
	Leave(ctx context.Context) error

	// Meet sets how others are reached without the engine. Call it before Join.
	Meet(Neighbors)
	// TellFor writes a heartbeat that another replica can't write itself. If this one can't
	// either, the error wraps an AwayError.
	TellFor(ctx context.Context, instance string, record []byte) error

	// View is what was last heard. It never blocks.
	View() *View
	// Leased reports whether this replica may act on what it holds: others have heard it, or
	// nobody hears the engine. By the time that they may take it, that has become false.
	Leased() bool
	// Teller returns the replica that writes the heartbeats of this one, if one does: it hears
	// the engine while this one does not.
	Teller() (Replica, bool)

	// Inquire asks all other replicas whether one of them holds name, while none hears the engine,
	// by what all have said that this one knows, and all know the same ones. It asks once for each
	// outage. After nil, Holder or Vacant tell the answer.
	Inquire(ctx context.Context, name string) error
	// Vacant returns in which outage this is if no replica holds name, by what all have answered
	// since it began, and zero if that is not known. As long as it is the same nobody claims name.
	Vacant(name string) (outage uint64)
	// Holds returns the epoch in which this replica holds the name of a [Key], zero if it does not:
	// then it claims nothing that it does not hold for as long as another one may serve that by its
	// answer. The error says that it can't tell.
	Holds(key string) (epoch uint64, err error)

	// Claim returns who holds name. If nobody living does, or one that is draining while this
	// replica is not, this replica claims it. From then
	// on, and even after an error that wraps ErrAway, this replica wants the name until
	// Release: if the holder dies, one of those that want the name claims it, and View.Changed
	// tells. While another replica comes first that may hold the name, as when the engine is back
	// and may have forgotten that, Claim waits, for Pace.Takeover of the slowest at most.
	Claim(ctx context.Context, name string) (Claim, error)
	// Holder returns who holds a name that this replica wants, by what is known here or was
	// answered to Inquire: it never blocks. It is false if nobody living is known to hold it.
	Holder(name string) (Claim, bool)
	// Seize takes a name from a holder that lives but can't be reached from here. If the
	// claim is not from any more, it returns the one that is.
	Seize(ctx context.Context, name string, from Claim) (Claim, error)
	// Yield gives name to another replica, if this one or nobody living holds it, and returns
	// who holds it then.
	Yield(ctx context.Context, name string, to Replica) (Claim, error)
	// Release ends the wish for name, and gives up a claim of this replica in the background.
	Release(name string)

	// Put keeps a record until ttl is over. Records are at most MaxRecord bytes.
	Put(ctx context.Context, key string, record []byte, ttl time.Duration) error
	// Get returns a record, or ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)
	// Take returns a record and deletes it. Among all replicas it succeeds once.
	Take(ctx context.Context, key string) ([]byte, error)
	Keeper

	// Close ends all that the engine has running, and waits for it. It does not Leave.
	Close(ctx context.Context) error
}

// Key is what engines call a name: 32 hexadecimal digits, which tell
// nothing of a principal in the name.
func Key(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}
