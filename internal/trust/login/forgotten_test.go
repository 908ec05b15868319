package login

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// forget has the authorization server know client-1 no more: its token endpoint answers with a
// code, and whoever the browser of the flow sends there gets a page of an error, and gives up.
func (r *rig) forget(f *Flow, code string, giveUp context.CancelFunc) {
	r.onToken = func(w http.ResponseWriter, form url.Values) bool {
		if form.Get("client_id") != "client-1" {
			return false
		}
		refuse(w, code)
		return true
	}
	f.Browse = func(to string) error {
		if strings.Contains(to, "client_id=client-1&") {
			giveUp()
			return nil
		}
		return r.browse(to)
	}
}

// An authorization server that has lost its clients gets another registration with the next login,
// wherever it was found out: when a token is refreshed, when a code is exchanged, or by nobody's
// coming back.
//
// Spec: RFC 6749, 5.2.
func TestForgottenClientRegistersAnew(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		find       func(t *testing.T, r *rig, f *Flow)
	}{
		{"refresh", "invalid_client", refreshInVain},
		{"refresh, as the SDK for Python says it", "unauthorized_client", refreshInVain},
		{"code", "invalid_client", func(t *testing.T, r *rig, f *Flow) {
			f.Browse = r.browse
			_, err := f.Run(testContext(t), r.challenge())
			wantError(t, err, "invalid_client")
		}},
		{"page of an error", "invalid_client", func(t *testing.T, r *rig, f *Flow) {
			ctx, giveUp := context.WithCancel(testContext(t))
			r.forget(f, "invalid_client", giveUp)
			_, err := f.Run(ctx, r.challenge())
			wantError(t, err, "the next login registers")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			f := r.flow()
			if _, err := f.Run(testContext(t), r.challenge()); err != nil {
				t.Fatal(err)
			}
			r.forget(f, tt.code, func() {})
			tt.find(t, r, f)
			ctx, giveUp := context.WithCancel(testContext(t))
			r.forget(f, tt.code, giveUp)
			l, err := f.Run(ctx, r.challenge())
			if err != nil || l.Client.ID != "client-2" || len(r.regs) != 2 {
				t.Errorf("login = %+v, %v, registrations %d, want another login with a second registration", l, err, len(r.regs))
			}
		})
	}
}

// use returns the credentials of the login that a flow has stored.
func (r *rig) use(f *Flow) *Stored {
	return NewStored(StoredOptions{Server: "docs", HTTP: r.http(), Keeper: f.Store.KeeperOf(r.url())})
}

// refreshInVain has the token of the stored login refused, and so refreshed.
func refreshInVain(t *testing.T, r *rig, f *Flow) {
	s := r.use(f)
	defer s.Close()
	_, err := s.Renew(testContext(t), refusal(http.StatusUnauthorized, "Bearer access-1", "Bearer", 1))
	wantError(t, err, "wants a login")
}

// A client that is known is registered once, whatever else goes wrong, and one that a person has
// registered is never replaced.
func TestKnownClientIsKept(t *testing.T) {
	for _, tt := range []struct{ name, id, code, want string }{
		{"registered, and the login has ended", "", "invalid_grant", "client-1"},
		{"registered, and the server is busy", "", "slow_down", "client-1"},
		{"configured", "mine", "invalid_client", "mine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			f := r.flow()
			f.ClientID = tt.id
			if _, err := f.Run(testContext(t), r.challenge()); err != nil {
				t.Fatal(err)
			}
			f.ClientID = ""
			r.onToken = func(w http.ResponseWriter, _ url.Values) bool { refuse(w, tt.code); return true }
			s := r.use(f)
			defer s.Close()
			_, err := s.Renew(testContext(t), refusal(http.StatusUnauthorized, "Bearer access-1", "Bearer", 1))
			wantError(t, err, tt.code)
			r.onToken = nil
			if l, err := f.Run(testContext(t), r.challenge()); err != nil || l.Client.ID != tt.want {
				t.Errorf("login = %+v, %v, want the client %s", l, err, tt.want)
			}
		})
	}
}

// An authorization server that knows its clients again, as after a restore, is sent the refresh
// token that it has issued: nobody has to log in.
func TestRememberedClientNeedsNoLogin(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	r.forget(f, "invalid_client", func() {})
	refreshInVain(t, r, f)
	r.onToken = nil
	s := r.use(f)
	defer s.Close()
	value, err := s.Renew(testContext(t), refusal(http.StatusUnauthorized, "Bearer access-1", "Bearer", 1))
	if value != "Bearer access-2" || err != nil {
		t.Fatalf("Renew = %q, %v, want a refreshed token", value, err)
	}
	f.Browse = r.browse
	if l, err := f.Run(testContext(t), r.challenge()); err != nil || l.Client.ID != "client-1" {
		t.Errorf("login = %+v, %v, want the client that is known", l, err)
	}
}

// A login that ends because somebody has logged in elsewhere says nothing against the client that
// both have.
func TestLoginElsewhereKeepsClient(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	other := *f
	f.Browse = func(string) error { // who logs in by the other one
		_, err := other.Run(testContext(t), r.challenge())
		return err
	}
	f.Wait = time.Minute
	l, err := f.runUnless(testContext(t), r.challenge(), func(l *Login) bool { return l.Token.AccessToken == "access-2" })
	if err != nil || l.Client.ID != "client-1" || l.Client.Anew {
		t.Errorf("login = %+v, %v, want the other one's, with the client that is known", l, err)
	}
}
