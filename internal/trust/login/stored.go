package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A Keeper keeps the login to one server. It is safe for concurrent use, also by several
// processes.
type Keeper interface {
	// Load returns the login; [ErrNoLogin] if there is none.
	Load(ctx context.Context) (*Login, error)
	// Save keeps a login in the place of the last one. The caller has the lock.
	Save(ctx context.Context, l *Login) error
	// RegisterAnew has the next login register another client than that of a login, if that was
	// registered on the way. The caller has the lock.
	RegisterAnew(ctx context.Context, l *Login) error
	// Version returns the version of what Load returns, which is nil if there is none. ok is
	// false if it can't be told at the moment.
	Version(ctx context.Context) (v Version, ok bool)
	// Lock waits for a lock that only one has who changes the login.
	Lock(ctx context.Context) (unlock func(), err error)
}

// A Version identifies a login. It is another one whenever one is kept.
type Version interface{ Same(as Version) bool }

// sameVersion reports whether two versions are the same. Nil is that of no login.
func sameVersion(a, b Version) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Same(b)
}

// StoredOptions configure credentials of a stored login. HTTP and Keeper are required.
type StoredOptions struct {
	// Server is how mcpbridge login is told which server it is.
	Server string
	HTTP   *fetch.Client
	Keeper Keeper
	// Step is what to do if the login is missing. Empty means mcpbridge login.
	Step string
	// Principal is the only principal on whose behalf the login is used, besides the
	// gateway itself. Empty means every principal.
	Principal mcp.Principal
	// Flow logs in if there is no login that the server accepts. Without one, the error
	// says how to log in.
	Flow *Flow
	// Secrets hides the tokens in logs and errors; may be nil.
	Secrets *redact.Redactor
	// Logger logs that a refreshed token can't be saved; may be nil.
	Logger *slog.Logger
}

// Stored are credentials with the tokens of a stored login. It implements
// [upstream.Credentials].
type Stored struct {
	StoredOptions
	holder *holder
	beside *refresher
	shared *sharedLogin // nil without a Flow

	// unsaved is used instead of what is stored; nil if all is saved. It changes under the lock of
	// the Keeper.
	unsaved atomic.Pointer[unsaved]

	began  time.Time
	looked atomic.Int64            // when the keeper was last asked, in nanoseconds since began
	seen   atomic.Pointer[Version] // of the login in holder, or of what was read last; nil before that
}

// lookEvery is the minimum time between two checks of the store. After another process has
// removed or replaced a login, the old one is used for that long at most.
const lookEvery = 2 * time.Second

// NewStored returns the credentials. The caller must call Close.
func NewStored(o StoredOptions) *Stored {
	s := &Stored{StoredOptions: o, began: time.Now()}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	s.holder = newHolder(o.Secrets, s.get)
	s.beside = newRefresher(s.holder)
	if o.Flow != nil {
		s.shared = newSharedLogin(o.Flow, s.Adopt)
	}
	return s
}

// Close stops a login in progress, and ends a refresh in progress. Its tokens need not be hidden any
// more.
func (s *Stored) Close() {
	if s.shared != nil {
		s.shared.close()
	}
	s.beside.close()
	s.holder.put(nil)
}

// Authorization implements [upstream.Credentials]. If there is no login, but a person can be
// asked to log in, the request has no header: the server may not require one.
func (s *Stored) Authorization(ctx context.Context, b upstream.Behalf) (string, error) {
	if err := s.allow(b); err != nil {
		return "", err
	}
	s.look(ctx)
	value, err := s.beside.value(ctx)
	if s.shared != nil && isOver(err) {
		return "", nil
	}
	return value, err
}

// look makes the holder read the login again if another process, or replica, has removed or
// replaced it. While there is none, each request looks: somebody may just have logged in.
func (s *Stored) look(ctx context.Context) {
	last, now := s.looked.Load(), int64(time.Since(s.began))
	held := s.holder.now.Load() != nil
	if seen := s.seen.Load(); seen == nil || held && (now-last < int64(lookEvery) || !s.looked.CompareAndSwap(last, now)) {
		return
	}
	v, ok := s.Keeper.Version(ctx)
	if !ok || sameVersion(v, *s.seen.Load()) {
		return
	}
	s.holder.failed.Store(nil)
	if held {
		s.holder.put(nil)
	}
}

// see notes the version of what is read next, or was written.
func (s *Stored) see(ctx context.Context) {
	v, _ := s.Keeper.Version(ctx)
	s.seen.Store(&v)
}

// Ready asks a person to log in before the first request, if there is no login and the
// server requires one. It does not wait longer for that than a request. Without a Flow it does
// nothing.
func (s *Stored) Ready(ctx context.Context) error {
	if s.shared == nil {
		return nil
	}
	if _, err := s.beside.value(ctx); !isOver(err) {
		return err
	}
	status, challenge, err := s.Flow.Ask(ctx)
	if err != nil || status != http.StatusUnauthorized {
		return nil // the first request reports it
	}
	_, err = s.loginAgain(ctx, challenge, "", nil)
	return err
}

// allow returns an error if the login must not be used on behalf of b.
func (s *Stored) allow(b upstream.Behalf) error {
	if s.Principal == "" || b == (upstream.Behalf{}) || b.Principal == s.Principal {
		return nil
	}
	return unusableTo(errors.New("is logged in to on behalf of another principal"), "upstream_auth.oauth says of whom; logins per user are not supported")
}

// Renew implements [upstream.Credentials].
func (s *Stored) Renew(ctx context.Context, r upstream.CredentialRefusal) (string, error) {
	if err := s.allow(r.Behalf); err != nil {
		return "", err
	}
	more := wants(&r)
	switch {
	case r.Status == http.StatusForbidden && len(more) == 0:
		return "", nil
	case r.Status == http.StatusUnauthorized && r.Value != "" && r.Attempt == 1:
		if value, err := s.holder.renew(ctx, r.Value, nil); err == nil || s.shared == nil || !isOver(err) {
			return value, err
		}
	}
	if s.shared == nil || r.Attempt > maxRenewals {
		return "", s.refused(more)
	}
	return s.loginAgain(ctx, ReadChallenge(r.Header), strings.TrimPrefix(r.Value, "Bearer "), more)
}

// refused returns the error if a server does not accept the token of a login.
func (s *Stored) refused(more []string) error {
	if len(more) > 0 {
		err := fmt.Errorf("wants the scopes %s, which the stored login lacks", shown(strings.Join(more, " ")))
		if s.Step != "" {
			return unusable(&wantsError{err, more}, s.Step)
		}
		return unusable(err, s.step()+" --scope "+shown(strings.Join(more, " --scope ")))
	}
	return unusable(&wantsError{errors.New("does not accept the stored login"), nil}, s.step())
}

// step says what to do if a login is missing.
func (s *Stored) step() string { return cmp.Or(s.Step, "run mcpbridge login "+s.Server) }

// loginAgain asks a person to log in, and returns the value of the new login: other than
// the refused token, and with more scopes.
func (s *Stored) loginAgain(ctx context.Context, challenge Challenge, refused string, more []string) (string, error) {
	l, err := s.shared.login(ctx, challenge, func(l *Login) bool {
		return l.Token.AccessToken != refused && l.Token.Valid() && covers(l.Scopes, more)
	})
	switch {
	case err == nil:
		return bearer(l.Token.AccessToken), nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.As(err, new(*pendingError)):
		return "", &upstream.CredentialError{Err: err, Step: step(err, s.step()), Login: true}
	case errors.As(err, new(*restError)):
		return "", unusable(err, step(err, s.step()))
	}
	return "", unusable(fmt.Errorf("wants a login, which has failed: %w", err), s.step())
}

// Adopt has further requests sent with a new login, which was kept.
func (s *Stored) Adopt(l *Login) {
	s.see(context.Background())
	s.holder.put(hold(l.Token, l.Scopes))
	s.holder.failed.Store(nil)
}

// Visit returns where a person can log in, while requests have to wait for that; nil for
// nowhere.
func (s *Stored) Visit() *mcp.Visit {
	if s.shared == nil {
		return nil
	}
	return s.shared.visit()
}

// get returns the stored token, or refreshes it. Only one process refreshes it, and the
// others read the result.
func (s *Stored) get(ctx context.Context, refused string, _ []string) (*held, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.beside.live, cancel)()
	s.see(ctx) // before the login is read, so that no change is missed
	l, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	if s.usable(l, refused) {
		return hold(l.Token, l.Scopes), nil
	}
	unlock, err := s.Keeper.Lock(ctx)
	if err != nil {
		return nil, unusable(fmt.Errorf("can't be used: %w", err), "try again")
	}
	defer unlock()
	if l, err = s.load(ctx); err != nil {
		return nil, err
	}
	if s.usable(l, refused) {
		return hold(l.Token, l.Scopes), nil
	}
	if err := s.refresh(ctx, l); err != nil {
		return nil, err
	}
	s.see(ctx) // others can't change it, because it is locked
	return hold(l.Token, l.Scopes), nil
}

// usable reports whether the token of a login need not be refreshed first. One that ends soon,
// and was not known, has to be known first: it is refreshed beside the requests.
func (s *Stored) usable(l *Login, refused string) bool {
	known := s.holder.now.Load()
	switch {
	case l.Token.AccessToken == refused:
		return false
	case l.Token.Valid():
		return true
	}
	return l.Token.lives() && (known == nil || known.AccessToken != l.Token.AccessToken)
}

// load reads the login. If there is none any more, its token is not used any longer either.
func (s *Stored) load(ctx context.Context) (*Login, error) {
	u := s.unsaved.Load() // before the stored one is read: that may be saved meanwhile
	l, err := s.Keeper.Load(ctx)
	switch {
	case errors.Is(err, ErrNoLogin):
		s.holder.put(nil)
		return nil, s.over(errors.New("wants a login, and there is none"))
	case err != nil:
		return nil, unusable(fmt.Errorf("wants a login, and the stored one can't be read: %w", err), s.step())
	case u.replaces(l):
		return new(*u.login), nil
	}
	return l, nil
}

// refresh replaces the token of a login, and stores it. The login is over only if the
// authorization server says so: whatever else goes wrong may be better a moment later.
//
// Spec: 2026-07-28, basic/authorization, Refresh Tokens; RFC 6749, 6.
func (s *Stored) refresh(ctx context.Context, l *Login) error {
	if l.Token.RefreshToken == "" {
		return s.over(errors.New("wants a login: the stored one has expired, and can't be refreshed"))
	}
	g := grant{http: s.HTTP, endpoint: l.TokenEndpoint, client: &l.Client, params: url.Values{
		"grant_type": {grantRefresh}, "refresh_token": {l.Token.RefreshToken}, "resource": {l.Resource},
	}}
	t, err := g.token(ctx)
	var refused *GrantError
	switch {
	case errors.As(err, &refused) && refused.final():
		if lostClient(err) {
			err = s.registerAnew(ctx, l, err)
		}
		return s.over(fmt.Errorf("wants a login: the stored one has ended (%w)", err))
	case err != nil:
		return unusable(fmt.Errorf("can't be used, since the token of its login could not be refreshed: %w", err), "try again; if that does not help, "+s.step())
	}
	used := l.Token.RefreshToken
	l.Token, l.Client.Anew = tokenOf(t), false
	l.Scopes = slices.Clip(l.Scopes)
	s.save(ctx, l, used)
	return nil
}

// registerAnew has the next login register another client, and returns why this one has ended.
func (s *Stored) registerAnew(ctx context.Context, l *Login, why error) error {
	if err := s.Keeper.RegisterAnew(ctx, l); err != nil {
		return fmt.Errorf("%w; the client can't be discarded: %v", why, err)
	}
	s.see(ctx)
	return why
}

// An overError says that there is no login any more that can be used. Another one helps, and
// nothing else does.
type overError struct{ err error }

func (e *overError) Error() string { return e.err.Error() }
func (e *overError) Unwrap() error { return e.err }

// over returns the error if only another login helps.
func (s *Stored) over(err error) error { return unusable(&overError{err}, s.step()) }

func isOver(err error) bool { return errors.As(err, new(*overError)) }
