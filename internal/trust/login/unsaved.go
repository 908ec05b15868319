package login

import (
	"context"
	"errors"
	"time"
)

const (
	// saveEvery is how long it takes until a login is saved again, after that has failed. It
	// doubles up to saveRest.
	saveEvery = 2 * time.Second
	saveRest  = time.Minute
	// saveWait bounds one attempt: requests wait for the first.
	saveWait = 5 * time.Second
)

// An unsaved login has a refreshed token that could not be saved.
type unsaved struct {
	login *Login
	over  string // the refresh token that is stored, which was used
}

// save stores a login whose token was refreshed. If that fails, the token is used all the same, and
// saved later: the authorization server does not accept the used refresh token again, and may take
// who sends it for a thief, and end the login. The caller has the lock.
//
// Spec: RFC 9700, 4.14.2.
func (s *Stored) save(ctx context.Context, l *Login, used string) {
	ctx, cancel := context.WithTimeout(ctx, saveWait)
	defer cancel()
	err := s.Keeper.Save(ctx, l)
	before := s.unsaved.Load()
	switch {
	case err == nil && before == nil:
	case err == nil:
		s.unsaved.Store(nil)
		s.Logger.Info(savedAgain)
	case before != nil: // saveLater is under way
		s.unsaved.Store(&unsaved{l, before.over})
	default:
		s.unsaved.Store(&unsaved{l, used})
		s.Logger.Warn("the refreshed token of a login can't be saved: it is used from memory, and saved as soon as that is possible", "err", err)
		s.beside.also(s.saveLater)
	}
}

const savedAgain = "the refreshed token of a login is saved"

// saveLater saves a login until it is saved, or another one is in its place, and for the last time
// when closing is closed.
func (s *Stored) saveLater(ctx context.Context, closing <-chan struct{}) {
	for pause, last := saveEvery, false; ; pause = min(2*pause, saveRest) {
		select {
		case <-time.After(pause):
		case <-closing:
			last = true
		}
		err := s.saveAgain(ctx)
		if err != nil && last {
			s.Logger.Warn("the refreshed token of a login is lost, since it could not be saved: somebody has to log in again", "err", err)
		}
		if err == nil || last {
			return
		}
	}
}

// saveAgain saves a login, unless another one, or none, is in its place by now.
func (s *Stored) saveAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, saveWait)
	defer cancel()
	unlock, err := s.Keeper.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	u := s.unsaved.Load()
	if u == nil {
		return nil // the next refresh has saved it
	}
	switch l, err := s.Keeper.Load(ctx); {
	case err != nil && !errors.Is(err, ErrNoLogin):
		return err
	case err == nil && u.replaces(l):
		if err := s.Keeper.Save(ctx, u.login); err != nil {
			return err
		}
		s.see(ctx)
		s.Logger.Info(savedAgain)
	}
	s.unsaved.Store(nil)
	return nil
}

// replaces reports whether a login is still the one whose refresh token was used; false for nil.
func (u *unsaved) replaces(stored *Login) bool {
	return u != nil && stored.Token.RefreshToken == u.over
}
