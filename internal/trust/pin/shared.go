package pin

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// A Keeper keeps records for all replicas until they are replaced.
type Keeper interface {
	// Kept returns the record of a key, and its version, which is empty if there is none.
	Kept(ctx context.Context, key string) (record []byte, version string, err error)
	// Keep replaces a record if it has a version, and returns the version of the new one. That
	// is empty if the record has another version.
	Keep(ctx context.Context, key, version string, record []byte) (now string, err error)
}

// A Shared is a Store that replicas share: their engine keeps it. An engine may forget
// everything. What this process has loaded, or else what a former Store has, is put there
// again then, and no new list is accepted in its place.
type Shared struct {
	keeper Keeper
	former Store // nil if there is none
	logger *slog.Logger

	mu   sync.Mutex       // guards last
	last map[string]*File // by server
}

// freshFor is how long what was loaded counts as what is kept.
const freshFor = time.Second

// NewShared returns a Store at an engine. former, which may be nil, has what was accepted before
// there was one.
func NewShared(k Keeper, former Store, log *slog.Logger) *Shared {
	return &Shared{keeper: k, former: former, logger: log, last: make(map[string]*File)}
}

// keyOf returns the key of a server's record.
func keyOf(server string) string { return "pins " + server }

// Load implements [Store].
func (s *Shared) Load(ctx context.Context, server string) (*File, string, error) {
	f, version, err := s.load(ctx, server)
	if err != nil {
		return nil, "", fmt.Errorf("reading the pinned tools of server %q at the engine of the replicas: %w", server, err)
	}
	return f, version, nil
}

func (s *Shared) load(ctx context.Context, server string) (*File, string, error) {
	for range tries {
		record, version, err := s.keeper.Kept(ctx, keyOf(server))
		if err != nil {
			return nil, "", err
		}
		if version != "" {
			f, err := unpack(server, record)
			if err == nil {
				s.remember(f)
			}
			return f, version, err
		}
		known, err := s.known(ctx, server)
		if err != nil || known == nil {
			return newFile(server), "", err
		}
		if version, err = s.keep(ctx, known, ""); err != nil || version != "" {
			return known, version, err
		}
	}
	return nil, "", ErrReplaced
}

func (s *Shared) remember(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[f.Server] = f
}

// known returns what is known of a server of which the engine knows nothing; nil for nothing.
func (s *Shared) known(ctx context.Context, server string) (*File, error) {
	s.mu.Lock()
	last := s.last[server]
	s.mu.Unlock()
	if last != nil {
		s.logger.Warn("the engine of the replicas has forgotten the pinned tools of a server; they are put there again", "upstream", server, "tools", len(last.Tools))
		return last, nil
	}
	if s.former == nil {
		return nil, nil
	}
	f, version, err := s.former.Load(ctx, server)
	if err != nil || version == "" {
		return nil, err
	}
	s.logger.Info("the pinned tools of a server are put from state_dir to the engine of the replicas", "upstream", server, "tools", len(f.Tools))
	return f, nil
}

func (s *Shared) keep(ctx context.Context, f *File, version string) (string, error) {
	record, err := f.pack()
	if err != nil {
		return "", err
	}
	now, err := s.keeper.Keep(ctx, keyOf(f.Server), version, record)
	if err == nil && now != "" {
		s.remember(f)
	}
	return now, err
}

// Swap implements [Store].
func (s *Shared) Swap(ctx context.Context, f *File, version string) (string, error) {
	now, err := s.keep(ctx, f, version)
	switch {
	case err != nil:
		return "", fmt.Errorf("storing the pinned tools of server %q at the engine of the replicas: %w", f.Server, err)
	case now == "":
		return "", ErrReplaced
	}
	return now, nil
}

// Stale implements [Store].
func (s *Shared) Stale(_, _ string, loaded time.Time) bool { return time.Since(loaded) >= freshFor }
