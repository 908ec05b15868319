package handover

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// Path is where the peer listener gets the sessions of a server, whose name follows.
const Path = "/peer/session/"

// Options configure a Group. All are required but Logger and Metrics.
type Options struct {
	Engine replicas.Engine
	// URL returns where a path is at another replica.
	URL func(to replicas.Replica, path string) string
	// RoundTripper sends requests to another replica.
	RoundTripper func(to replicas.Replica, sender func(*http.Request) mcp.Sender) http.RoundTripper

	Logger  *slog.Logger // nil discards
	Metrics Metrics      // nil counts nothing
}

// Metrics count what becomes of sessions when their replica ends. Safe for concurrent use.
type Metrics interface {
	// HandedOver counts n sessions: "given" to another replica, or "taken" from one. Those
	// that are not taken count as "refused" there, and at their own replica as "failed", each
	// time that it tries, with a reason; and as "ended" if they end with their replica.
	HandedOver(outcome, reason string, n int)
}

type unobserved struct{}

func (unobserved) HandedOver(string, string, int) {}

// A Server is one whose sessions are handed over.
type Server struct {
	Name  string
	Front *legacyfront.Front
	// Stateless reports whether the server keeps nothing of a session.
	Stateless func() bool
	// Heir returns which replica is to go on with a session.
	Heir func(legacyfront.Handover) replicas.Replica
	// Took is called for a session of another replica that goes on here.
	Took func(legacyfront.Handover)
}

// A Group hands sessions over, goes on with those of other replicas, and knows where others
// do. It is safe for concurrent use.
type Group struct {
	opts   Options
	failed transport.WarnLimiter // of sessions that were not handed over
	hidden transport.WarnLimiter // of those whose places can't be recorded
	places *lru.Cache[[sha256.Size]byte, place]
	asking chan struct{} // slots for looking up places

	live    context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup // renew

	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	adopted map[legacyfront.SessionID]*adopted
	begun   bool // renew
	closed  bool
}

// New returns a Group. It starts nothing. The caller must call Close.
func New(o Options) (*Group, error) {
	if o.Engine == nil || o.URL == nil || o.RoundTripper == nil {
		return nil, errors.New("handover: Engine, URL and RoundTripper are required")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or[Metrics](o.Metrics, unobserved{})
	places, err := lru.New[[sha256.Size]byte, place](maxPlaces)
	if err != nil {
		return nil, err
	}
	g := &Group{opts: o, places: places, asking: make(chan struct{}, maxAsking), adopted: make(map[legacyfront.SessionID]*adopted)}
	g.live, g.stop = context.WithCancel(context.Background())
	return g, nil
}

// Close ends what the Group has running. Records of sessions that are here stay until their
// time is over.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.stop()
	g.running.Wait()
}

// keyOf is what the record of a session's place is called. The id grants access; the engine
// gets a digest of it.
func keyOf(id string) string { return "session " + id }

// recordTTL is how long a record lasts unless it is renewed, renewEvery how often that is
// done, and look how often it is checked what is to be renewed.
const (
	recordTTL  = time.Hour
	renewEvery = 20 * time.Minute
	look       = 5 * time.Second
)
