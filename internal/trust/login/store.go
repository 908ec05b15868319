package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/oauth2"
)

// ErrNoLogin says that there is no stored login for a server.
var ErrNoLogin = errors.New("there is no stored login")

// A Login is the result of a [Flow].
type Login struct {
	Server   string   `json:"server"` // its URL
	Issuer   string   `json:"issuer"`
	Resource string   `json:"resource"`
	Client   Client   `json:"client"`
	Scopes   []string `json:"scopes,omitempty"` // that were requested

	TokenEndpoint      string `json:"token_endpoint"`
	RevocationEndpoint string `json:"revocation_endpoint,omitempty"`
	Token              Token  `json:"token"`
}

// A Token is an issued token.
type Token struct {
	AccessToken  string    `json:"access_token"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expires      time.Time `json:"expires,omitzero"`
}

func tokenOf(t *oauth2.Token) Token {
	return Token{AccessToken: t.AccessToken, RefreshToken: t.RefreshToken, Expires: t.Expiry}
}

// early is how long before its end a token is replaced, because it must still be valid when
// the server reads it. If that fails, it is used until its end.
const early = 10 * time.Second

// Valid reports whether the token need not be replaced before it is sent.
func (t *Token) Valid() bool {
	return t.AccessToken != "" && (t.Expires.IsZero() || time.Until(t.Expires) > early)
}

// lives reports whether the token has not ended.
func (t *Token) lives() bool {
	return t.AccessToken != "" && (t.Expires.IsZero() || time.Until(t.Expires) > 0)
}

// An entry says where the login to a server is stored. It is not secret.
type entry struct {
	Server   string `json:"server"`
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	Keyring  bool   `json:"keyring"`
}

// key is the key of the tokens. It differs between authorization servers.
func (e *entry) key() string { return digest(e.Issuer, e.Resource) }

// digest returns a name for texts that differs between any two lists of texts.
func digest(texts ...string) string {
	text, _ := json.Marshal(texts) // marshaling texts never fails
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// A Store stores logins. The tokens are in the system's keyring, or without one in files
// that only the user may read, by issuer and resource; further files say which server has
// which. A Store is safe for concurrent use, also by several processes if they use [lock].
type Store struct {
	dir  string
	ring keyring // nil if there is none
	log  *slog.Logger
}

// StoreOptions configure a Store.
type StoreOptions struct {
	// Dir is the folder of the files, which is created when something is stored. Required.
	Dir string
	// NoKeyring stores everything in files.
	NoKeyring bool
	// Logger logs why the keyring is not used; may be nil.
	Logger *slog.Logger
}

// OpenStore returns the Store in a folder.
func OpenStore(o StoreOptions) *Store {
	s := &Store{dir: o.Dir, log: o.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if !o.NoKeyring {
		s.ring = systemKeyring{}
	}
	return s
}

// Load returns the login to a server; [ErrNoLogin] if there is none.
func (s *Store) Load(server string) (*Login, error) {
	e, err := s.entry(server)
	if err != nil {
		return nil, err
	}
	text, err := s.secret(e)
	if err != nil {
		return nil, err
	}
	l := new(Login)
	if json.Unmarshal(text, l) != nil || l.Issuer != e.Issuer || l.Resource != e.Resource {
		return nil, fmt.Errorf("%w that can be read", ErrNoLogin)
	}
	l.Server = server
	return l, nil
}

// entry reads the entry of a server.
func (s *Store) entry(server string) (*entry, error) {
	text, err := ReadPrivate(s.entryFile(server))
	if err != nil {
		return nil, err
	}
	e := new(entry)
	if json.Unmarshal(text, e) != nil || e.Server != name(server) {
		return nil, fmt.Errorf("%w that can be read", ErrNoLogin)
	}
	return e, nil
}

func (s *Store) secret(e *entry) ([]byte, error) {
	if !e.Keyring {
		return ReadPrivate(s.secretFile(e))
	}
	if s.ring == nil {
		return nil, fmt.Errorf("%w outside the system's keyring, which is not used", ErrNoLogin)
	}
	return s.ring.get(e.key())
}

// Save stores a login, and replaces the last one to its server.
func (s *Store) Save(l *Login) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := MakeDir(s.dir); err != nil {
		return err
	}
	e := &entry{Server: name(l.Server), Issuer: l.Issuer, Resource: l.Resource}
	before, _ := s.entry(l.Server) // there may be none, or it can't be read
	if err := s.keep(e, text); err != nil {
		return err
	}
	where, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := WritePrivate(s.entryFile(l.Server), where); err != nil {
		return err
	}
	if before != nil && before.key() != e.key() && !s.used(before) {
		s.erase(before)
	}
	return nil
}

// keep stores the secret part of a login, and sets its place in e.
func (s *Store) keep(e *entry, text []byte) error {
	if s.ring != nil {
		err := s.ring.set(e.key(), string(text))
		if err == nil {
			e.Keyring = true
			_ = os.Remove(s.secretFile(e)) // from before there was a keyring
			return nil
		}
		s.log.Debug("storing login in a file instead of the system's keyring", "error", err)
	}
	return WritePrivate(s.secretFile(e), text)
}

// Delete removes the login to a server.
func (s *Store) Delete(server string) error {
	e, err := s.entry(server)
	if err != nil {
		return err
	}
	if err := os.Remove(s.entryFile(server)); err != nil {
		return err
	}
	if !s.used(e) {
		s.erase(e)
	}
	return nil
}

// erase removes the secret part of a login.
func (s *Store) erase(e *entry) {
	_ = os.Remove(s.secretFile(e)) // it may be only in the keyring
	if e.Keyring && s.ring != nil {
		if err := s.ring.remove(e.key()); err != nil {
			s.log.Warn("removing login from the system's keyring", "error", err)
		}
	}
}

// used reports whether another URL of the same server has the same login.
func (s *Store) used(e *entry) bool {
	files, _ := filepath.Glob(filepath.Join(s.dir, "*"+entrySuffix)) // the pattern is well-formed
	for _, file := range files {
		other := new(entry)
		text, err := ReadPrivate(file)
		if err == nil && json.Unmarshal(text, other) == nil && other.key() == e.key() {
			return true
		}
	}
	return false
}

// A fileVersion identifies the stored login of a server, by the file in which it is. Nil means that
// there is none.
type fileVersion struct{ file fs.FileInfo }

// version returns the version of the login to a server.
func (s *Store) version(server string) *fileVersion {
	info, err := os.Stat(s.entryFile(server))
	if err != nil {
		return nil
	}
	return &fileVersion{info}
}

// Same implements [Version].
func (v *fileVersion) Same(as Version) bool {
	w, ok := as.(*fileVersion)
	return ok && v.equal(w)
}

func (v *fileVersion) equal(w *fileVersion) bool {
	if v == nil || w == nil {
		return v == w
	}
	return os.SameFile(v.file, w.file) && v.file.ModTime().Equal(w.file.ModTime())
}

// KeeperOf returns the Keeper of the login to a server.
func (s *Store) KeeperOf(server string) Keeper { return &storeKeeper{s, server} }

// A storeKeeper is the Keeper of one login in a Store.
type storeKeeper struct {
	store  *Store
	server string // its URL
}

// Load implements [Keeper].
func (k *storeKeeper) Load(context.Context) (*Login, error) { return k.store.Load(k.server) }

// Save implements [Keeper].
func (k *storeKeeper) Save(_ context.Context, l *Login) error { return k.store.Save(l) }

// RegisterAnew implements [Keeper].
func (k *storeKeeper) RegisterAnew(_ context.Context, l *Login) error {
	if !l.Client.Registered || l.Client.Anew {
		return nil
	}
	l.Client.Anew = true
	return k.store.Save(l)
}

// Version implements [Keeper].
func (k *storeKeeper) Version(context.Context) (Version, bool) {
	if v := k.store.version(k.server); v != nil {
		return v, true
	}
	return nil, true
}

// Lock implements [Keeper].
func (k *storeKeeper) Lock(ctx context.Context) (unlock func(), err error) {
	return k.store.lock(ctx, k.server, lockTokens)
}

const (
	entrySuffix  = ".server.json"
	secretSuffix = ".login.json"
	lockSuffix   = ".lock"
)

func (s *Store) entryFile(server string) string {
	return filepath.Join(s.dir, digest(name(server))+entrySuffix)
}

func (s *Store) secretFile(e *entry) string { return filepath.Join(s.dir, e.key()+secretSuffix) }

// name returns the name of a server in files that are not secret: its URL, with a digest
// instead of the query, which may be a secret.
func name(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return digest(server)
	}
	text := origin(u) + u.EscapedPath()
	if u.RawQuery != "" {
		text += "?" + digest(u.RawQuery)
	}
	return text
}

// The locks of a server: tokens may be refreshed while a person logs in. Several URLs may have one
// login, which only URLs of one origin can: that has the lock of the tokens.
const (
	lockLogin  = "login"
	lockTokens = "tokens"
)

// lock waits for a lock that only one goroutine of one process can have.
func (s *Store) lock(ctx context.Context, server, which string) (unlock func(), err error) {
	if err := MakeDir(s.dir); err != nil {
		return nil, err
	}
	of := name(server)
	if u, err := url.Parse(server); err == nil && which == lockTokens {
		of = origin(u)
	}
	return LockFile(ctx, filepath.Join(s.dir, digest(of)+"."+which+lockSuffix))
}

// LockFile waits for the lock of a file, which is made.
func LockFile(ctx context.Context, file string) (unlock func(), err error) {
	l := flock.New(file, flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("locking the stored logins: %w", err)
	}
	return func() { _ = l.Close() }, nil // the lock ends with the file
}

// MakeDir makes the folder of logins, which has to have a name.
func MakeDir(dir string) error {
	if dir == "" {
		return errors.New("there is no folder to store logins in: set state_dir")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the folder of the logins: %w", err)
	}
	return nil
}

// ReadPrivate reads a file; [ErrNoLogin] if there is none.
func ReadPrivate(file string) ([]byte, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoLogin
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stored login: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the stored login: %w", err)
	case !isPrivate(info):
		return nil, fmt.Errorf("the file of the stored login, %s, can be read or written by others, and is not used; remove it, and log in again", file)
	case info.Size() > maxLogin:
		return nil, fmt.Errorf("%w that can be read", ErrNoLogin)
	}
	text := make([]byte, info.Size())
	n, err := f.ReadAt(text, 0)
	if n < len(text) {
		return nil, fmt.Errorf("reading the stored login: %w", err)
	}
	return text, nil
}

// maxLogin limits a stored login, in bytes.
const maxLogin = 1 << 20

// WritePrivate replaces a file by one that only the user may read.
func WritePrivate(file string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("storing the login: %w", err)
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is not used
		return fmt.Errorf("storing the login: %w", err)
	}
	return nil
}
