package auth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// replicated are replicas of mcpbridge with one engine, and what stands before them: clients and
// browsers reach one replica after another.
type replicated struct {
	*bridge // the balancer, and the admin address of the first
	t       testing.TB
	config  string
	all     []*bridge // nil while one is away
	mu      sync.Mutex
	turn    atomic.Int64
}

// newReplicated starts replicas with a configuration as newBridge has it.
func newReplicated(t testing.TB, n int, config string) *replicated {
	t.Helper()
	engine := rig.FreeAddr(t)
	_, port, _ := net.SplitHostPort(engine)
	at, _ := strconv.Atoi(port)
	s, err := server.NewServer(&server.Options{ServerName: "engine", Host: "127.0.0.1", Port: at, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("nats-server is not ready")
	}
	balancer := rig.FreeAddr(t)
	r := &replicated{t: t, bridge: &bridge{base: "http://" + balancer}, all: make([]*bridge, n)}
	r.config = fmt.Sprintf("replicas: {engine: \"nats://127.0.0.1:%s\", keys: [a key of the replicas of this test], advertise: {peer}}\nadmin_token: %s\n%s", port, adminToken, config)
	for i := range r.all {
		r.start(i)
	}
	r.admin = r.all[0].admin
	l, err := net.Listen("tcp", balancer)
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{Handler: http.HandlerFunc(r.pass)}
	go func() { _ = front.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = front.Close() })
	return r
}

// start starts a replica.
func (r *replicated) start(i int) {
	r.t.Helper()
	config := strings.ReplaceAll(strings.ReplaceAll(r.config, "{base}", r.base), "{peer}", rig.FreeAddr(r.t))
	b := newBridge(r.t, config)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[i] = b
}

// restart ends a replica in order, and starts another in its place.
func (r *replicated) restart(i int) {
	r.t.Helper()
	r.mu.Lock()
	was := r.all[i]
	r.all[i] = nil
	r.mu.Unlock()
	if err := was.Stop(time.Minute); err != nil {
		r.t.Error(err)
	}
	r.start(i)
}

// one returns a replica that is there.
func (r *replicated) one(turn int) *bridge {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.all {
		if b := r.all[(turn+i)%len(r.all)]; b != nil {
			return b
		}
	}
	return nil
}

func (r *replicated) pass(w http.ResponseWriter, q *http.Request) {
	to, _ := url.Parse(r.one(int(r.turn.Add(1))).base)
	proxy := httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = q.Host }}
	proxy.ServeHTTP(w, q)
}

// A member is a user of the schedules, and what is true of his login.
type member struct {
	name, token string
	in          bool      // he has a login
	out         time.Time // when it was ended
}

// noticed is how long a replica may go on with a login that another one has ended.
const noticed = 3 * time.Second

// TestUsersAtReplicas has users log in, call, log out and wait for their tokens to expire, in random
// orders, at three replicas with one engine, of which one may be restarted meanwhile. Whatever
// happens, a call comes with its user's token, or is answered with a link; a login that was made is
// used by all replicas, and one that was ended by none.
func TestUsersAtReplicas(t *testing.T) {
	takeTurn(t)
	schedules, first := 20, uint64(1)
	if text := os.Getenv("USERS"); text != "" {
		schedules, _ = strconv.Atoi(text)
	}
	if text := os.Getenv("USERS_SEED"); text != "" {
		first, _ = strconv.ParseUint(text, 10, 64)
	}
	ids, as := newIssuer(t), newIssuer(t)
	ids.set(t, map[string]any{"ttl": 7200}) // longer than all schedules take
	as.set(t, map[string]any{"ttl": 12})    // less the ten seconds before its end in which a token is refreshed
	behind := newProtected(t, as)
	r := newReplicated(t, 3, perPrincipal(ids, behind))
	var users []*member
	for _, name := range []string{"alice", "bob"} {
		users = append(users, &member{name: name, token: ids.login(t, name, r.endpoint("modern"), "mcp:use").Access})
	}
	began := time.Now()
	for i := range uint64(schedules) {
		w := &schedule{replicated: r, ids: ids, seed: first + i, rand: rand.New(rand.NewPCG(first+i, 0)), users: users}
		w.run()
		if t.Failed() {
			t.Fatalf("the schedule was USERS_SEED=%d", first+i)
		}
	}
	refreshed, twice := as.events(t, "grant.success", "refresh_token"), as.events(t, "grant.error", "refresh_token")
	t.Logf("%d schedules in %v, in which tokens were refreshed %d times", schedules, time.Since(began), len(refreshed))
	if len(twice) > 0 || schedules >= 20 && len(refreshed) == 0 {
		t.Errorf("tokens were refreshed %d times, and %d times in vain: %+v; want each refresh token to be sent once", len(refreshed), len(twice), twice)
	}
	for _, h := range came(t, behind) {
		if h.Sub != "" && (h.Aud != behind || h.Sub != "alice" && h.Sub != "bob") {
			t.Errorf("the server was sent a token of %+v", h)
		}
	}
}

// A schedule is one order of events.
type schedule struct {
	*replicated
	ids   *issuer
	seed  uint64
	rand  *rand.Rand
	users []*member
}

func (w *schedule) run() {
	for range 8 {
		u := w.users[w.rand.IntN(len(w.users))]
		switch n := w.rand.IntN(20); {
		case n < 9:
			w.callAll()
		case n < 13:
			w.logIn(u)
		case n < 16:
			w.logOut(u)
		case n < 18:
			time.Sleep(time.Duration(w.rand.IntN(1500)) * time.Millisecond) // tokens of two seconds expire
		case n < 19 && w.seed%4 == 0:
			w.restart(1 + w.rand.IntN(len(w.all)-1))
		}
	}
	w.callAll()
}

// callAll has each user call at each replica, all at once.
func (w *schedule) callAll() {
	var all sync.WaitGroup
	for _, u := range w.users {
		for i := range w.all {
			all.Go(func() { w.call(u, i) })
		}
	}
	all.Wait()
}

func (w *schedule) call(u *member, at int) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	of, err := whoami(ctx, w.one(at).endpoint("modern"), u.token)
	switch {
	case err == nil && of.Sub != u.name:
		w.t.Errorf("%s's call at replica %d came with a token of %+v", u.name, at, of)
	case err == nil && !u.in && began.Sub(u.out) > noticed:
		w.t.Errorf("%s's call at replica %d came with a token, %v after the logout", u.name, at, began.Sub(u.out))
	case err != nil && linkIn(err.Error()) == "":
		w.t.Errorf("%s's call at replica %d: %v", u.name, at, err)
	case err != nil && u.in:
		w.t.Errorf("%s has a login, and the call at replica %d says: %v", u.name, at, err)
	}
}

// logIn has a user log in by a link, after another one has tried it.
func (w *schedule) logIn(u *member) {
	other := w.users[0].name
	if other == u.name {
		other = w.users[1].name
	}
	w.awaitLogout(u)
	_, err := whoami(w.t.Context(), w.endpoint("modern"), u.token)
	if u.in && err == nil {
		return
	}
	if err == nil {
		w.t.Errorf("%s has no login, and his call is served", u.name)
		return
	}
	link := linkIn(err.Error())
	if status, page, err := visitPage(link, other); err != nil || status != http.StatusForbidden {
		w.t.Errorf("%s opens the link of %s: %d %s, %v; want 403", other, u.name, status, page, err)
	}
	if err := visit(link, u.name); err != nil {
		w.t.Errorf("%s logs in: %v", u.name, err)
		return
	}
	u.in = true
}

// awaitLogout waits until all replicas have noticed the end of a login.
func (w *schedule) awaitLogout(u *member) {
	if !u.in && !u.out.IsZero() {
		time.Sleep(time.Until(u.out.Add(noticed)))
	}
}

func (w *schedule) logOut(u *member) {
	want := 0
	if u.in {
		want = 1
	}
	if n := w.logout(w.t, w.ids.url+" "+u.name, ""); n != want {
		w.t.Errorf("logout of %s ended %d logins, want %d", u.name, n, want)
	}
	if u.in {
		u.in, u.out = false, time.Now()
	}
}
