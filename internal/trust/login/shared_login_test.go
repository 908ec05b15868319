package login

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A lobby is where logins wait for a person.
type lobby struct {
	*outage
	browser error      // of opening one
	led     int        // how often one was tried
	answers chan error // of the person; nil is a login
	token   string     // that the next login gets

}

func newLobby(t *testing.T) *lobby {
	l := &lobby{outage: newOutage(t, time.Hour), answers: make(chan error), token: "access-1"}
	if err := l.shared.flow.Store.Delete(l.shared.flow.URL); err != nil {
		t.Fatal(err)
	}
	l.shared.flow.Browse = func(string) error { l.led++; return l.browser }
	l.shared.ask = l.ask
	return l
}

// ask is what a Flow does, with no socket in it.
func (l *lobby) ask(ctx context.Context, f *Flow, _ Challenge, _ func(*Login) bool) (*Login, error) {
	if err := f.Browse("https://as.example/authorize"); err != nil && !errors.Is(err, ErrNoBrowser) {
		return nil, err
	}
	select {
	case err := <-l.answers:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	got := &Login{Server: f.URL, Issuer: "https://as.example", Resource: f.URL, Token: Token{AccessToken: l.token}}
	return got, f.Store.Save(got)
}

// refused has the server refuse a request without a token, and wants the error for the client to come
// after a time, with a text and a step.
func (l *lobby) refused(after time.Duration, text, step string) {
	l.t.Helper()
	began := time.Now()
	value, err := l.Renew(l.t.Context(), refusal(http.StatusUnauthorized, "", "Bearer", 1))
	if took := time.Since(began); took != after {
		l.t.Errorf("the client waited for %v, want %v", took, after)
	}
	var c *upstream.CredentialError
	if value != "" || !errors.As(err, &c) || !strings.Contains(c.Error(), text) || !strings.Contains(c.Step, step) || !strings.Contains(c.Step, "run mcpbridge login docs") {
		l.t.Errorf("Renew = %q, %v, %+v, want an error with %q, and the step %q", value, err, c, text, step)
	}
}

// A request waits 20 s for a person at a browser, and is told then how to log in. The login
// goes on: later requests are told at once, and the first one after it uses it.
func TestLoginOutlivesRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLobby(t)
		l.refused(20*time.Second, "nobody has finished yet", "then try again")
		l.refused(0, "nobody has finished yet", "then try again")
		if v := l.Visit(); v == nil || v.URL != "https://as.example/authorize" {
			t.Errorf("Visit = %+v, want the page of the login", v)
		}
		l.answers <- nil
		synctest.Wait()
		l.want("Bearer access-1")
		if v := l.Visit(); v != nil || l.led != 1 {
			t.Errorf("Visit = %+v after the login, browsers: %d", v, l.led)
		}
	})
}

// Where there is no browser, requests are told at once.
func TestNoBrowserIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLobby(t)
		l.browser = ErrNoBrowser
		l.refused(0, "no browser could be opened", "then try again")
		l.refused(0, "no browser could be opened", "then try again")
		l.answers <- nil
		synctest.Wait()
		l.want("Bearer access-1")
	})
}

// A probe of the server's era has less time than a person; what is missing must be told all
// the same.
func TestLoginIsToldBeforeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLobby(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := l.Renew(ctx, refusal(http.StatusUnauthorized, "", "Bearer", 1))
		wantError(t, err, "nobody has finished yet")
	})
}

// After somebody said no, or nobody came, no browser is opened for a while: first for ten
// minutes, then for longer.
func TestNoBrowserAfterRefusal(t *testing.T) {
	denied := &GrantError{Code: "access_denied"}
	for _, tt := range []struct {
		name    string
		browser error
		answer  error
		tabs    int // after twelve minutes of requests
	}{
		{"denied", nil, denied, 2},
		{"denied without a browser of ours", ErrNoBrowser, denied, 2},
		{"nobody came", nil, errors.New("nobody has logged in within 10m0s"), 2},
		{"nobody came where there is no browser", ErrNoBrowser, errors.New("nobody has logged in"), 13},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLobby(t)
				l.browser = tt.browser
				for range 13 {
					_, _ = l.Renew(t.Context(), refusal(http.StatusUnauthorized, "", "Bearer", 1))
					synctest.Wait() // until an answer is waited for, if it is
					select {
					case l.answers <- tt.answer:
					default:
					}
					synctest.Wait()
					time.Sleep(time.Minute)
				}
				if l.led != tt.tabs {
					t.Errorf("a person was led to the page %d times, want %d", l.led, tt.tabs)
				}
				if tt.tabs == 2 {
					l.refused(0, "the last one has failed", "asks nobody by itself before")
				}
				time.Sleep(time.Until(l.shared.until)) // where there is no rest, at once
				go func() { l.answers <- nil }()
				if value, err := l.Renew(t.Context(), refusal(http.StatusUnauthorized, "", "Bearer", 1)); tt.browser == nil && (value != "Bearer access-1" || err != nil) {
					t.Errorf("Renew after the rest = %q, %v, want a login", value, err)
				}
				synctest.Wait()
				l.want("Bearer access-1")
				if l.shared.rest != 0 {
					t.Errorf("the rest is %v after a login, want none", l.shared.rest)
				}
			})
		})
	}
}

// A person who declines to visit the page ends the login.
func TestDeclinedVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLobby(t)
		l.browser = ErrNoBrowser
		l.refused(0, "no browser", "then try again")
		v := l.Visit()
		v.Decline()
		<-v.Done
		l.refused(0, "it was declined", "asks nobody by itself before")
	})
}
