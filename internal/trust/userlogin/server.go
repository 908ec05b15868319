package userlogin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// maxUsers bounds the principals of a server whose login is in memory.
const maxUsers = 4096

// A Server provides the credentials of the requests to one server: each principal's own. It
// implements [upstream.Credentials].
type Server struct {
	opts   ServerOptions
	logins *Logins
	ending sync.WaitGroup // of users that were dropped

	// mu guards the fields below, and user.requests.
	mu      sync.Mutex
	users   *lru.LRU[mcp.Principal, *user]
	leaving map[*user]bool // that were dropped during their requests
	closed  bool
}

// ServerOptions describe a server.
type ServerOptions struct {
	Name string
	// Flow logs in to the server. Its Redirect and Clients need not be set.
	Flow login.WebFlow
	// Full, which may be nil, is told when a principal makes room for another one. Its login is
	// read again with its next request.
	Full func()
}

// A user is a principal with a login, or without one yet.
type user struct {
	stored   *login.Stored
	requests int // that use it; the Server's mu guards it

	// mu guards wants: scopes that the server has asked for, besides those of the login.
	mu    sync.Mutex
	wants []string
}

// Open returns the credentials for a server. The caller closes them.
func (l *Logins) Open(o ServerOptions) *Server {
	o.Flow.Redirect, o.Flow.Clients = l.redirect(), clients{l}
	s := &Server{opts: o, logins: l, leaving: make(map[*user]bool)}
	if s.opts.Full == nil {
		s.opts.Full = func() {}
	}
	s.users, _ = lru.NewLRU(maxUsers, s.droppedLocked) // the size is positive
	return s
}

// droppedLocked ends a user who was dropped, but not during a request: that would be cut off.
func (s *Server) droppedLocked(_ mcp.Principal, u *user) {
	if u.requests > 0 && !s.closed {
		s.leaving[u] = true
		return
	}
	s.ending.Go(u.stored.Close) // which waits for a refresh that is under way
}

// Close ends refreshes that are under way.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.users.Purge()
	for u := range s.leaving {
		s.ending.Go(u.stored.Close)
	}
	s.leaving = nil
	s.mu.Unlock()
	s.ending.Wait()
}

// user returns the principal of a request; nil after Close. The caller calls leave at the end.
func (s *Server) user(p mcp.Principal) *user {
	s.mu.Lock()
	u, full := s.userLocked(p)
	s.mu.Unlock()
	if full {
		s.opts.Full()
	}
	return u
}

// userLocked is user. It reports whether another one has made room.
func (s *Server) userLocked(p mcp.Principal) (u *user, full bool) {
	if s.closed {
		return nil, false
	}
	u, ok := s.users.Get(p)
	if !ok {
		u = &user{stored: login.NewStored(login.StoredOptions{
			HTTP: s.opts.Flow.HTTP, Keeper: s.keeper(p), Step: "try again", Secrets: s.logins.opts.Secrets,
			Logger: s.logins.opts.Logger.With("upstream", s.opts.Name, p.Attr()),
		})}
		full = s.users.Add(p, u)
	}
	u.requests++
	return u, full
}

// leave ends the use of a user by a request.
func (s *Server) leave(u *user) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.requests--; u.requests == 0 && s.leaving[u] {
		delete(s.leaving, u)
		s.ending.Go(u.stored.Close)
	}
}

func (s *Server) keeper(p mcp.Principal) *keeper {
	return &keeper{s.logins, s, p, keyOf(s.opts.Name, p)}
}

var (
	errNobody = errors.New("wants a login of each user, and the request is nobody's")
	errClosed = errors.New("is not served any more")
)

// Authorization implements [upstream.Credentials]. Requests of the gateway itself have no
// principal, and so no header.
func (s *Server) Authorization(ctx context.Context, b upstream.Behalf) (string, error) {
	if b == (upstream.Behalf{}) {
		return "", nil
	}
	u, err := s.of(b)
	if err != nil {
		return "", err
	}
	defer s.leave(u)
	value, err := u.stored.Authorization(ctx, b)
	return value, u.told(err)
}

// Renew implements [upstream.Credentials].
func (s *Server) Renew(ctx context.Context, r upstream.CredentialRefusal) (string, error) {
	u, err := s.of(r.Behalf)
	if err != nil {
		return "", err
	}
	defer s.leave(u)
	value, err := u.stored.Renew(ctx, r)
	return value, u.told(err)
}

// of returns the user on whose behalf a request is, as user does.
func (s *Server) of(b upstream.Behalf) (*user, error) {
	if b.Principal == "" || b.Principal == mcp.Anonymous {
		return nil, &upstream.CredentialError{Err: errNobody, Step: "send it with a credential of mcpbridge", Caller: true}
	}
	u := s.user(b.Principal)
	if u == nil {
		return nil, &upstream.CredentialError{Err: errClosed, Step: "try again", Caller: true}
	}
	return u, nil
}

// told returns the error for the one user that it is about, and notes the scopes that are
// missing.
func (u *user) told(err error) error {
	of := (*upstream.CredentialError)(nil)
	if !errors.As(err, &of) {
		return err
	}
	out := *of
	out.Caller = true
	scopes, needs := login.NeedsLogin(err)
	if needs {
		out.Login, out.Step = true, "the client is told where its user can log in"
		u.mu.Lock()
		u.wants = scopes
		u.mu.Unlock()
	}
	return &out
}

// Link returns the URL of the page on which a principal can log in, for ten minutes. Whoever
// else opens it is refused.
func (s *Server) Link(p mcp.Principal) string {
	l := link{Server: s.opts.Name, Principal: p, Ends: time.Now().Add(visitLife).Unix()}
	if u := s.user(p); u != nil {
		defer s.leave(u)
		u.mu.Lock()
		l.Scopes = slices.Clone(u.wants)
		u.mu.Unlock()
	}
	return s.logins.linkURL(&l)
}

// Missing reports whether a principal has to log in before requests of it can be sent.
func (s *Server) Missing(ctx context.Context, p mcp.Principal) bool {
	_, err := s.Authorization(ctx, upstream.Behalf{Principal: p})
	_, needs := login.NeedsLogin(err)
	return needs
}

// awaitPoll is how often it is looked for a login that somebody waits for.
const awaitPoll = time.Second

// Await waits until a principal has a login, or for at most so long.
func (s *Server) Await(ctx context.Context, p mcp.Principal, most time.Duration) {
	late := time.NewTimer(most)
	defer late.Stop()
	look := time.NewTicker(awaitPoll)
	defer look.Stop()
	for s.Missing(ctx, p) {
		select {
		case <-look.C:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Keep keeps a login of a principal, and has further requests of the principal sent with it.
func (s *Server) Keep(ctx context.Context, p mcp.Principal, l *login.Login) error {
	k := s.keeper(p)
	unlock, err := k.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.logins.keep(ctx, &record{s.opts.Name, p, time.Now(), l}); err != nil {
		return err
	}
	if u := s.user(p); u != nil {
		defer s.leave(u)
		u.stored.Adopt(l)
		u.mu.Lock()
		u.wants = nil
		u.mu.Unlock()
	}
	return nil
}

// Forget has the login of a principal read again, since it was ended.
func (s *Server) Forget(p mcp.Principal) {
	s.mu.Lock()
	u, _ := s.users.Peek(p)
	s.mu.Unlock()
	if u != nil {
		u.stored.Forget()
	}
}

// host is what people are told that they log in to.
func (s *Server) host() string { return cmp.Or(hostOf(s.opts.Flow.URL), s.opts.Name) }
