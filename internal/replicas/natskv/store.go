package natskv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Options configure a Store.
type Options struct {
	URL         *replicas.URL // of kind NATS
	TLS         *tls.Config   // nil: that of the system, where the URL asks for it
	Credentials string        // file; empty for none
	Prefix      string        // of the names of the buckets
	Name        string        // of the connection, for whoever looks at the server
	Logger      *slog.Logger
}

// reconnect is the pause between attempts to reach the servers. It is much shorter than the time
// that a living holder has to claim again in a store that was emptied: or a replica that comes
// back late would lose what it holds to one that was earlier.
const (
	// pingEvery and pings have a server that is frozen, or was cut off, left for another one
	// before other replicas miss a heartbeat.
	pingEvery = 3 * replicas.Heartbeat / 4
	pings     = 2
)

var reconnect = wake.Backoff{Min: 100 * time.Millisecond, Max: replicas.Heartbeat / 2}

// A Store is a member.Store at NATS.
type Store struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	prefix string
	log    *slog.Logger
	hints  wake.Signal
	ended  chan struct{} // closed when the connection is

	mu      sync.Mutex // guards the fields below; never held while the server is asked
	open    *buckets   // nil if they have to be opened
	unused  bool       // open was not used yet
	opening *opening   // nil if they are not about to be
	closed  bool
	closing sync.WaitGroup // buckets that are not used any more
}

// Open returns a Store that connects in the background, until Close.
func Open(o Options) (*Store, error) {
	s := &Store{prefix: o.Prefix, log: o.Logger, hints: wake.NewSignal(), ended: make(chan struct{})}
	nc, err := nats.Connect(servers(o.URL), s.options(o)...)
	if err != nil {
		return nil, fmt.Errorf("reaching NATS: %w", err)
	}
	s.nc = nc
	if s.js, err = jetstream.New(nc); err != nil {
		nc.Close()
		return nil, fmt.Errorf("using JetStream of NATS: %w", err)
	}
	return s, nil
}

func (s *Store) options(o Options) []nats.Option {
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(func(attempts int) time.Duration { return wake.Jitter(reconnect.After(attempts)) }),
		nats.ReconnectBufSize(-1), // what can't be sent fails
		nats.Timeout(time.Second), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pings),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			s.log.Debug("the connection to NATS ended", "error", err)
			s.forget()
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			s.forget()
			s.hints.Send()
		}),
		nats.ConnectHandler(func(*nats.Conn) { s.hints.Send() }), // nothing was opened before
		nats.ClosedHandler(func(*nats.Conn) { close(s.ended) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.log.Debug("an error of NATS", "error", err)
			s.forget()
		}),
	}
	if o.TLS != nil {
		opts = append(opts, nats.Secure(o.TLS))
	}
	if o.URL.HandshakeFirst {
		opts = append(opts, nats.TLSHandshakeFirst())
	}
	if o.Credentials != "" {
		opts = append(opts, nats.UserCredentials(o.Credentials))
	}
	return opts
}

// Close ends the connection, and waits for it.
func (s *Store) Close(context.Context) error {
	s.mu.Lock()
	s.forgetLocked()
	s.closed = true
	s.mu.Unlock()
	s.nc.Close() // which ends the watches
	<-s.ended
	s.closing.Wait()
	return nil
}

// Changed has a value after NATS told that something changed.
func (s *Store) Changed() <-chan struct{} { return s.hints }

var errUnconnected = errors.New("not connected to NATS")

// absence says why there is no connection.
func (s *Store) absence() error {
	if err := s.nc.LastError(); err != nil {
		return fmt.Errorf("%w: %w", errUnconnected, err)
	}
	return errUnconnected
}

// use calls f with the buckets. If it fails they are opened again the next time: the server
// may have forgotten them.
func (s *Store) use(ctx context.Context, f func(*buckets) error) error {
	b, err := s.kept(ctx)
	if err == nil {
		err = f(b)
	}
	kept := errors.Is(err, replicas.ErrNotFound) || errors.Is(err, replicas.ErrTooLarge) || errors.Is(err, errNoLeader)
	if err != nil && !kept && ctx.Err() == nil {
		s.forget()
	}
	return err
}

// Poll returns what the watches have told. With fresh they are opened again, and tell all.
func (s *Store) Poll(ctx context.Context, keys []string, fresh bool) (member.Snapshot, error) {
	if fresh {
		s.refresh()
	}
	var snap member.Snapshot
	err := s.use(ctx, func(b *buckets) error {
		if !s.nc.IsConnected() {
			return s.absence()
		}
		snap = b.snapshot(keys)
		return nil
	})
	return snap, err
}

// Load asks for one claim.
func (s *Store) Load(ctx context.Context, key string) (e member.Entry, err error) {
	err = s.use(ctx, func(b *buckets) error {
		got, err := s.read(ctx, b.claims.kv, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		if err == nil {
			e = member.Entry{Revision: got.revision}
			if len(got.value) <= replicas.MaxClaim {
				e.Value = string(got.value)
			}
		}
		return err
	})
	return e, err
}

// Swap replaces a claim by its revision.
func (s *Store) Swap(ctx context.Context, key string, old member.Entry, value string) (done bool, err error) {
	err = s.use(ctx, func(b *buckets) error {
		err := swap(ctx, b.claims.kv, key, old, value)
		if conflict(err) {
			return nil
		}
		done = err == nil
		return err
	})
	return done, err
}

func swap(ctx context.Context, kv jetstream.KeyValue, key string, old member.Entry, value string) (err error) {
	switch {
	case value == "":
		return kv.Delete(ctx, key, jetstream.LastRevision(old.Revision))
	case old == member.Entry{}:
		_, err = kv.Create(ctx, key, []byte(value))
	default:
		_, err = kv.Update(ctx, key, []byte(value), old.Revision)
	}
	return err
}

// conflict reports whether a key had another revision.
func conflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// Claims calls f with each claim, and removes what marks those that were deleted some time
// before: NATS would keep it for ever. It is called by one replica, once in a while.
func (s *Store) Claims(ctx context.Context, f func(string, member.Entry)) error {
	return s.use(ctx, func(b *buckets) error {
		for key, e := range b.claims.all(time.Now()) {
			f(key, e)
		}
		s.spread(ctx, b.members.kv, b.claims.kv, b.records)
		if kept, err := s.js.KeyValue(ctx, s.bucketName(keptBucket)); err == nil { // if somebody keeps anything
			s.spread(ctx, kept)
		}
		return b.claims.kv.PurgeDeletes(ctx, jetstream.DeleteMarkersOlderThan(time.Minute))
	})
}

// servers are the URLs of all servers, as the client reads them.
func servers(u *replicas.URL) string {
	scheme := "nats"
	if u.TLS {
		scheme = "tls"
	}
	var all []string
	for _, h := range u.Hosts {
		one := url.URL{Scheme: scheme, User: h.User, Host: h.Addr}
		all = append(all, one.String())
	}
	return strings.Join(all, ",")
}
