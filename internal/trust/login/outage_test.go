package login

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// An outage is an authorization server in memory, which may be away, and a stored login of it
// whose token ends soon.
type outage struct {
	*rig
	*Stored
	status atomic.Int32  // of each answer of the token endpoint; zero for the right one
	code   string        // in these answers
	delay  time.Duration // of each answer
	led    atomic.Int32  // how often a person was led to a browser
}

// newOutage returns one whose token has the given time left.
func newOutage(t *testing.T, left time.Duration) *outage {
	t.Helper()
	const at = "http://127.0.0.1"
	o := &outage{rig: &rig{t: t, codes: map[string]url.Values{}, life: 3600, refresh: "refresh-0"}}
	o.onToken = o.answer
	client := fetch.New(fetch.Options{Near: []string{at}})
	client.HTTP().Transport = o
	store := o.store()
	err := store.Save(&Login{
		Server: at + "/mcp", Issuer: at, Resource: at + "/mcp", TokenEndpoint: at + "/token", Client: Client{ID: "c", Method: authNone},
		Token: Token{AccessToken: "access-0", RefreshToken: "refresh-0", Expires: time.Now().Add(left)},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &Flow{URL: at + "/mcp", HTTP: client, Store: store, Browse: func(string) error { o.led.Add(1); return errors.New("nobody is there") }}
	o.Stored = NewStored(StoredOptions{Server: "docs", HTTP: client, Keeper: store.KeeperOf(at + "/mcp"), Flow: f})
	t.Cleanup(o.Stored.Close)
	return o
}

// RoundTrip implements [http.RoundTripper].
func (o *outage) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-time.After(o.delay):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	w := httptest.NewRecorder()
	o.token(w, req)
	return w.Result(), nil
}

func (o *outage) answer(w http.ResponseWriter, _ url.Values) bool {
	status := int(o.status.Load())
	if status == 0 {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(o.code))
	return true
}

// want asks for the value of Authorization.
func (o *outage) want(want string) {
	o.t.Helper()
	if got, err := o.Authorization(o.t.Context(), upstream.Behalf{}); got != want || err != nil {
		o.t.Errorf("Authorization = %q, %v, want %q", got, err, want)
	}
}

// asked checks how often the token endpoint was asked.
func (o *outage) asked(want int) {
	o.t.Helper()
	if got := len(o.forms()); got != want {
		o.t.Errorf("the token endpoint was asked %d times, want %d", got, want)
	}
}

// While the authorization server answers 503, a token is used until it ends, and refreshing
// is tried again with pauses. When the server is back, the login is as good as before: nobody
// is led to a browser.
func TestOutageCostsNoLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, 30*time.Second)
		o.status.Store(http.StatusServiceUnavailable)
		o.want("Bearer access-0")
		o.asked(0)
		time.Sleep(22 * time.Second)
		for range 5 {
			o.want("Bearer access-0")
		}
		o.asked(1)
		time.Sleep(failurePause)
		o.want("Bearer access-0")
		o.asked(2)
		time.Sleep(6 * time.Second)
		_, err := o.Authorization(t.Context(), upstream.Behalf{})
		wantError(t, err, "HTTP 503")
		var c *upstream.CredentialError
		if !errors.As(err, &c) || !strings.HasPrefix(c.Step, "try again") {
			t.Errorf("error %v says to do %+v, want to try again", err, c)
		}
		o.status.Store(0)
		time.Sleep(failurePause)
		o.want("Bearer access-1")
		if n := o.led.Load(); n != 0 {
			t.Errorf("a person was led to a browser %d times, want never", n)
		}
	})
}

// An authorization server that does not answer holds no call up for long as long as the token
// lives, and is asked once at a time.
func TestSlowIssuerHoldsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, 8*time.Second)
		o.delay = 5 * time.Second
		began := time.Now()
		for range 3 {
			o.want("Bearer access-0")
		}
		if took := time.Since(began); took != 3*dueWait {
			t.Errorf("three calls took %v, want %v", took, 3*dueWait)
		}
		time.Sleep(o.delay - 3*dueWait)
		synctest.Wait()
		o.want("Bearer access-1")
		o.asked(1)
	})
}

// A refresh in progress is given a moment at the end, and no more.
func TestCloseEndsRefresh(t *testing.T) {
	for _, tt := range []struct {
		name       string
		takes      time.Duration
		want       time.Duration
		wantStored string
	}{
		{"one that ends soon", 2 * time.Second, time.Second, "access-1"},
		{"one that does not", 14 * time.Second, closeWait, "access-0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOutage(t, 8*time.Second)
				o.delay = tt.takes
				o.want("Bearer access-0") // waits for a second
				began := time.Now()
				o.Stored.Close()
				if took := time.Since(began); took != tt.want {
					t.Errorf("Close took %v, want %v", took, tt.want)
				}
				if l, err := o.Stored.Keeper.Load(testContext(t)); err != nil || l.Token.AccessToken != tt.wantStored {
					t.Errorf("stored: %+v, %v, want %s", l, err, tt.wantStored)
				}
			})
		})
	}
}

// A server refuses a token while the authorization server is away: that is no reason for a
// login either, and the refresh token is as good as before.
func TestRefusedTokenDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, time.Hour)
		o.status.Store(http.StatusServiceUnavailable)
		o.want("Bearer access-0")
		_, err := o.Renew(t.Context(), refusal(http.StatusUnauthorized, "Bearer access-0", "Bearer", 1))
		wantError(t, err, "HTTP 503")
		o.status.Store(0)
		time.Sleep(failurePause)
		value, err := o.Renew(t.Context(), refusal(http.StatusUnauthorized, "Bearer access-0", "Bearer", 1))
		if value != "Bearer access-1" || err != nil || o.led.Load() != 0 {
			t.Errorf("Renew = %q, %v, a person was led to a browser %d times; want a refreshed token", value, err, o.led.Load())
		}
	})
}

// Only the authorization server's judgement ends a login.
//
// Spec: RFC 6749, 5.2.
func TestOnlyFinalRefusalsEndLogins(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		over   bool
	}{
		{"invalid_grant", 400, `{"error":"invalid_grant"}`, true},
		{"interaction_required, as of Entra ID", 400, `{"error":"interaction_required"}`, true},
		{"bad_refresh_token, as of GitHub", 200, `{"error":"bad_refresh_token"}`, true},
		{"temporarily_unavailable", 400, `{"error":"temporarily_unavailable"}`, false},
		{"server_error", 400, `{"error":"server_error"}`, false},
		{"too many requests", 429, `{"error":"invalid_grant"}`, false},
		{"a broken server", 500, `{"error":"invalid_grant"}`, false},
		{"a proxy's page", 502, `<html>`, false},
		{"another page", 200, `<html>`, false},
		{"400 without a code", 400, `{}`, false},
		{"404", 404, ``, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOutage(t, -time.Second)
				o.status.Store(int32(tt.status))
				o.code = tt.body
				value, err := o.Authorization(t.Context(), upstream.Behalf{})
				if over := err == nil; over != tt.over || value != "" {
					t.Errorf("Authorization = %q, %v, want a login to be asked for: %v", value, err, tt.over)
				}
			})
		})
	}
}

// A full is a Keeper that can save nothing for a while.
type full struct {
	Keeper
	left atomic.Int32 // how often Save fails
}

func (f *full) Save(ctx context.Context, l *Login) error {
	if f.left.Add(-1) >= 0 {
		return errors.New("no space left on device")
	}
	return f.Keeper.Save(ctx, l)
}

// fill has the next so many attempts to save fail.
func (o *outage) fill(attempts int32) *full {
	f := &full{Keeper: o.Stored.Keeper}
	f.left.Store(attempts)
	o.Stored.Keeper = f
	return f
}

// kept checks which tokens are stored.
func (o *outage) kept(access, refresh string) {
	o.t.Helper()
	if l, err := o.Stored.Keeper.Load(o.t.Context()); err != nil || l.Token.AccessToken != access || l.Token.RefreshToken != refresh {
		o.t.Errorf("stored: %+v, %v, want %s and %s", l, err, access, refresh)
	}
}

// A token that can't be stored is used all the same, also for the next one, and stored when that is
// possible: the authorization server does not accept the refresh token before it again.
func TestUnsavedTokenIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, -time.Second)
		log := new(strings.Builder)
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		disk := o.fill(1 << 30)
		o.want("Bearer access-1")
		o.kept("access-0", "refresh-0")
		time.Sleep(time.Hour)
		o.want("Bearer access-2")
		o.want("Bearer access-2")
		o.asked(2)
		disk.left.Store(0)
		time.Sleep(saveRest)
		synctest.Wait()
		o.kept("access-2", "refresh-2")
		o.want("Bearer access-2")
		time.Sleep(time.Hour)
		o.want("Bearer access-3")
		o.kept("access-3", "refresh-3")
		if n := o.led.Load(); n != 0 {
			t.Errorf("a person was led to a browser %d times, want never", n)
		}
		if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "no space left on device") || strings.Contains(got, "access-") {
			t.Errorf("log = %s, want one line with the cause, and one when it was over", got)
		}
	})
}

// The engine of the replicas may be away for a moment: its store is tried again soon, and at the end.
func TestUnsavedTokenIsSavedSoon(t *testing.T) {
	for _, tt := range []struct {
		name string
		then func(o *outage)
	}{
		{"after a moment", func(*outage) { time.Sleep(saveEvery); synctest.Wait() }},
		{"at the end", func(o *outage) { o.Stored.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOutage(t, -time.Second)
				o.fill(1)
				o.want("Bearer access-1")
				tt.then(o)
				o.kept("access-1", "refresh-1")
			})
		})
	}
}

// A token that could not be stored does not replace another login that was made meanwhile, nor is
// it used after a logout.
func TestUnsavedTokenOfAnotherLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, -time.Second)
		disk := o.fill(1)
		o.want("Bearer access-1")
		l, err := disk.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.Token = Token{AccessToken: "access-a", RefreshToken: "refresh-a"}
		if err := disk.Keeper.Save(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery + saveEvery)
		synctest.Wait()
		o.want("Bearer access-a")
		o.kept("access-a", "refresh-a")
		o.asked(1)
	})
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, -time.Second)
		o.fill(1)
		o.want("Bearer access-1")
		if err := o.Flow.Store.Delete(o.Flow.URL); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery + saveEvery)
		synctest.Wait()
		o.want("")
	})
}

// The token of mcpbridge itself is used until it ends, too.
func TestOutageOfClientCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, time.Hour)
		o.life = 30
		client := fetch.New(fetch.Options{})
		client.HTTP().Transport = o
		i, err := newIssuerClient(IssuerOptions{HTTP: client, Resource: "http://127.0.0.1/mcp", ClientID: "service"})
		if err != nil {
			t.Fatal(err)
		}
		i.found.Store(&authServer{Issuer: "http://127.0.0.1", TokenEndpoint: "http://127.0.0.1/token"})
		c := i.clientCredentials()
		if value, err := c.Authorization(t.Context(), upstream.Behalf{}); value != "Bearer access-1" || err != nil {
			t.Fatalf("Authorization = %q, %v", value, err)
		}
		o.status.Store(http.StatusServiceUnavailable)
		time.Sleep(25 * time.Second)
		if value, err := c.Authorization(t.Context(), upstream.Behalf{}); value != "Bearer access-1" || err != nil {
			t.Errorf("Authorization = %q, %v, want the token that lives", value, err)
		}
		time.Sleep(5 * time.Second)
		_, err = c.Authorization(t.Context(), upstream.Behalf{})
		wantError(t, err, "no token was issued")
	})
}

// Nor does it hold up a call that is sent with a token of mcpbridge itself, or in exchange for its
// caller's, for long as long as that token lives.
func TestSlowIssuerOfIssuedTokens(t *testing.T) {
	type credentials interface {
		upstream.Credentials
		Close()
	}
	for name, open := range map[string]func(o *outage) (credentials, error){
		"client_credentials": func(o *outage) (credentials, error) {
			i, err := newIssuerClient(o.options())
			o.find(i)
			return NewCurrent(i.clientCredentials()), err
		},
		"token_exchange": func(o *outage) (credentials, error) {
			e, err := TokenExchange(o.options())
			o.find(e.issuer)
			return e, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOutage(t, time.Hour)
				o.life = 30
				c, err := open(o)
				if err != nil {
					t.Fatal(err)
				}
				ada := of(issued("caller", time.Hour))
				want := func(want string) {
					t.Helper()
					if got, err := c.Authorization(t.Context(), ada); got != want || err != nil {
						t.Errorf("Authorization = %q, %v, want %q", got, err, want)
					}
				}
				want("Bearer access-1")
				o.delay = 14 * time.Second   // and not as long as a request may take
				time.Sleep(22 * time.Second) // 8 s are left
				began := time.Now()
				for range 3 {
					want("Bearer access-1")
				}
				if took := time.Since(began); took != 3*dueWait {
					t.Errorf("three calls took %v, want %v", took, 3*dueWait)
				}
				time.Sleep(o.delay - 3*dueWait)
				synctest.Wait()
				want("Bearer access-2")
				o.asked(2)
				time.Sleep(22 * time.Second)
				want("Bearer access-2") // another refresh is under way
				began = time.Now()
				c.Close()
				if took := time.Since(began); took != closeWait {
					t.Errorf("Close took %v, want %v", took, closeWait)
				}
			})
		})
	}
}
