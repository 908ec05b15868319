package userlogin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

// Options configure [Logins]. All but Secrets and Noted are required.
type Options struct {
	Place Place
	// Keys are the secrets that all is sealed with: the first seals, all open.
	Keys []string
	// Public is what the URLs of the pages begin with: the URL by which browsers reach what
	// serves [Pages], without a slash at its end.
	Public string
	// Fetch returns what fetches on behalf of a server of which nothing but the URL is known.
	Fetch  func(server string) *fetch.Client
	Logger *slog.Logger
	// Secrets hides tokens in logs and errors.
	Secrets *redact.Redactor
	// Noted is told when a login is made, refused or ended.
	Noted func(Event)
}

// An Event is what became of a login.
type Event struct {
	What      string // "login", "refused" or "logout"
	Server    string
	Principal mcp.Principal // of the link, or the login
	By        mcp.Principal // "refused": who the browser's user is; empty if that is not known
	Address   string        // of the browser; empty without one
	Why       string        // "refused"; and "logout", if the issuer has not revoked it
}

// Logins are those of all principals at all servers. Safe for concurrent use.
type Logins struct {
	opts   Options // but for Place
	sealer sealer
	place  atomic.Pointer[Place]
}

// New returns the Logins of a place.
func New(o Options) (*Logins, error) {
	l := &Logins{opts: o}
	l.Use(o.Place)
	if o.Noted == nil {
		l.opts.Noted = func(Event) {}
	}
	return l, l.Replace(o.Keys)
}

// Use has the logins be in another place.
func (l *Logins) Use(p Place) { l.place.Store(&p) }

func (l *Logins) at() Place { return *l.place.Load() }

// Replace has all further logins sealed with the first of other keys.
func (l *Logins) Replace(keys []string) error { return l.sealer.replace(keys) }

// A record is a login as it is kept.
type record struct {
	Server    string        `json:"server"` // its name
	Principal mcp.Principal `json:"principal"`
	Since     time.Time     `json:"since"`
	Login     *login.Login  `json:"login"`
}

// The records begin with what they are, and their keys, to which they are sealed: a record that
// was put in the place of another one does not open.
const (
	loginKey  = "l "
	clientKey = "c "
	keyLen    = len(loginKey) + 32
)

// keyOf returns the key of a principal's login at a server.
func keyOf(server string, p mcp.Principal) string {
	text, _ := json.Marshal([]string{server, string(p)}) // marshaling texts never fails
	return loginKey + replicas.Key(string(text))
}

// load returns a login, or [login.ErrNoLogin].
func (l *Logins) load(ctx context.Context, key string) (*record, error) {
	text, err := l.at().Kept(ctx, key)
	switch {
	case errors.Is(err, replicas.ErrNotFound):
		return nil, login.ErrNoLogin
	case err != nil:
		return nil, err
	}
	r, err := l.read(key, text)
	if err != nil {
		return nil, fmt.Errorf("%w that can be read: %w", login.ErrNoLogin, err)
	}
	return r, nil
}

// read opens a record of the key.
func (l *Logins) read(key string, text []byte) (*record, error) {
	if len(text) < keyLen || string(text[:keyLen]) != key {
		return nil, errSealed
	}
	plain, err := l.sealer.open(forLogins, key, text[keyLen:])
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(plain, r); err != nil || r.Login == nil || keyOf(r.Server, r.Principal) != key {
		return nil, errors.New("it is not a login")
	}
	return r, nil
}

// keep keeps a login. The caller has its lock.
func (l *Logins) keep(ctx context.Context, r *record) error {
	plain, err := json.Marshal(r)
	if err != nil {
		return err
	}
	key := keyOf(r.Server, r.Principal)
	return l.at().Keep(ctx, key, append([]byte(key), l.sealer.seal(forLogins, key, plain)...))
}

// A keeper is the login of a principal at a server, as its credentials have it.
type keeper struct {
	logins    *Logins
	server    *Server
	principal mcp.Principal
	key       string
}

func (k *keeper) record(ctx context.Context) (*record, error) {
	r, err := k.logins.load(ctx, k.key)
	if err == nil && r.Login.Server != k.server.opts.Flow.URL {
		return nil, fmt.Errorf("%w at this URL", login.ErrNoLogin) // tokens are for the one they were issued for
	}
	return r, err
}

// Load implements [login.Keeper].
func (k *keeper) Load(ctx context.Context) (*login.Login, error) {
	r, err := k.record(ctx)
	if err != nil {
		return nil, err
	}
	return r.Login, nil
}

// Save implements [login.Keeper].
func (k *keeper) Save(ctx context.Context, l *login.Login) error {
	since := time.Now()
	if r, err := k.record(ctx); err == nil {
		since = r.Since
	}
	return k.logins.keep(ctx, &record{k.server.opts.Name, k.principal, since, l})
}

// RegisterAnew implements [login.Keeper]. The client is that of all principals, and so has a lock of
// its own. Who has that waits for no login.
func (k *keeper) RegisterAnew(ctx context.Context, l *login.Login) error {
	all := clients{k.logins}
	unlock, err := all.Lock(ctx, l.Issuer)
	if err != nil {
		return err
	}
	defer unlock()
	return all.DropClient(ctx, l.Issuer, l.Client.ID)
}

// Lock implements [login.Keeper].
func (k *keeper) Lock(ctx context.Context) (unlock func(), err error) {
	return k.logins.at().Lock(ctx, k.key)
}

// A version is the digest of a record.
type version [sha256.Size]byte

// Same implements [login.Version].
func (v version) Same(as login.Version) bool { return v == as }

// versionTime bounds how long a request waits for the version of a login.
const versionTime = 500 * time.Millisecond

// Version implements [login.Keeper].
func (k *keeper) Version(ctx context.Context) (login.Version, bool) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	text, err := k.logins.at().Kept(ctx, k.key)
	switch {
	case errors.Is(err, replicas.ErrNotFound):
		return nil, true
	case err != nil:
		return nil, false
	}
	return version(sha256.Sum256(text)), true
}

// An Entry is a login, without what is secret in it.
type Entry struct {
	Server    string        `json:"server"`
	Principal mcp.Principal `json:"principal"`
	Issuer    string        `json:"issuer"`
	Since     time.Time     `json:"since"`
	Expires   time.Time     `json:"expires,omitzero"` // of the token, which may be refreshed
	Refreshed bool          `json:"refreshed"`        // whether that is so
	Scopes    []string      `json:"scopes,omitempty"`
}

func (r *record) entry() Entry {
	t := &r.Login.Token
	return Entry{r.Server, r.Principal, r.Login.Issuer, r.Since, t.Expires, t.RefreshToken != "", r.Login.Scopes}
}

// List returns all logins, in order. unread is how many of them were sealed with other keys.
func (l *Logins) List(ctx context.Context) (all []Entry, unread int, err error) {
	err = l.each(ctx, func(r *record, err error) {
		if err != nil {
			unread++
			return
		}
		all = append(all, r.entry())
	})
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Principal, b.Principal))
	})
	return all, unread, err
}

// each calls f with each login, or why it can't be read.
func (l *Logins) each(ctx context.Context, f func(*record, error)) error {
	return l.at().EachKept(ctx, func(text []byte) {
		if len(text) < keyLen || string(text[:len(loginKey)]) != loginKey {
			return
		}
		f(l.read(string(text[:keyLen]), text))
	})
}

// An Ended login is one that was ended.
type Ended struct {
	Entry
	Revoked bool   `json:"revoked"`       // by its issuer, too
	Why     string `json:"why,omitempty"` // it was not
}

// End ends the logins of a principal: at one server, or at all if server is empty. They are
// deleted, and then revoked where the issuer can do that. Requests that are being sent are not cut
// off; other replicas send none with them after two seconds.
func (l *Logins) End(ctx context.Context, server string, p mcp.Principal) (ended []Ended, err error) {
	var found []Entry
	err = l.each(ctx, func(r *record, err error) {
		if err == nil && r.Principal == p && (server == "" || r.Server == server) {
			found = append(found, r.entry())
		}
	})
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		one, err := l.end(ctx, e)
		if err != nil {
			return ended, err
		}
		if one != nil {
			ended = append(ended, *one)
		}
	}
	return ended, nil
}

// end ends one login; it returns nil if there is none any more.
func (l *Logins) end(ctx context.Context, e Entry) (*Ended, error) {
	key := keyOf(e.Server, e.Principal)
	unlock, err := l.at().Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	r, err := l.load(ctx, key)
	if err == nil {
		err = l.at().Discard(ctx, key)
	}
	unlock()
	switch {
	case errors.Is(err, login.ErrNoLogin):
		return nil, nil
	case err != nil:
		return nil, err
	}
	out := &Ended{Entry: r.entry(), Revoked: true}
	if err := r.Login.Revoke(ctx, l.opts.Fetch(r.Login.Server)); err != nil {
		out.Revoked, out.Why = false, err.Error()
	}
	l.opts.Noted(Event{What: "logout", Server: e.Server, Principal: e.Principal, Why: out.Why})
	return out, nil
}
