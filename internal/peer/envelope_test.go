package peer

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	testKey  = "a key of all replicas"
	otherKey = "a key of last month, accepted"
)

var (
	edge   = replicas.Replica{Instance: "AAAAAAAA", Addr: "127.0.0.1:1"}
	holder = replicas.Replica{Instance: "BBBBBBBB", Addr: "127.0.0.1:2"}
)

func newGroup(t testing.TB, self replicas.Replica, keys ...string) *Group {
	t.Helper()
	g, err := New(Options{Engine: replicastest.Alone(self), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// sealed returns a request as g sends it to the holder.
func sealed(g *Group, e *Envelope, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp/files?x=1", strings.NewReader(body))
	r.Header.Set("Mcp-Session-Id", "1BBBBBBBB-secret")
	r.Header.Set("Authorization", "Bearer abc")
	g.seal(e, holder, r)
	return r
}

func TestEnvelope(t *testing.T) {
	id := &mcp.Identity{Principal: "alice;=\x00", Issuer: "https://issuer", Subject: "alice", Scopes: []string{"read", "write"},
		Claims: map[string]json.RawMessage{"groups": json.RawMessage(`["a","b"]`)}, Expires: time.Now().Add(time.Hour).Round(0)}
	for name, want := range map[string]Envelope{
		"anonymous":   {Net: netip.MustParsePrefix("2001:db8::/64"), Addr: "[2001:db8::1]:4000"},
		"identity":    {Identity: id, Addr: "10.0.0.1:99"},
		"no expiry":   {Identity: &mcp.Identity{Principal: "bob"}},
		"odd addr":    {Addr: "pipe;x=y"},
		"with digest": {Digest: digest([]byte("body"))},
		"moved":       {Moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			sent := want
			r := sealed(newGroup(t, edge, testKey), &sent, "body")
			got, err := newGroup(t, holder, otherKey+"!", testKey).Open(r)
			if err != nil {
				t.Fatal(err)
			}
			if !isPlain(sent.Addr) {
				sent.Addr = ""
			}
			if got.Identity != nil && !got.Identity.Expires.Equal(sent.Identity.Expires) {
				t.Errorf("expiry %v, want %v", got.Identity.Expires, sent.Identity.Expires)
			}
			if got.Identity != nil {
				got.Identity.Expires = sent.Identity.Expires
			}
			if got.Expires = sent.Expires; !reflect.DeepEqual(*got, sent) {
				t.Errorf("opened %+v, want %+v", *got, sent)
			}
			if r.Header.Get(Header) != "" {
				t.Error("the envelope is still there")
			}
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "body" {
				t.Errorf("body %q, %v", body, err)
			}
		})
	}
}

// Whatever is altered, used again, or for another, is refused.
func TestEnvelopeRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		alter  func(*http.Request)
		status int
	}{
		"session":       {func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "1BBBBBBBB-other") }, 401},
		"no session":    {func(r *http.Request) { r.Header.Del("Mcp-Session-Id") }, 401},
		"second":        {func(r *http.Request) { r.Header.Add("Mcp-Session-Id", "1BBBBBBBB-other") }, 401},
		"event":         {func(r *http.Request) { r.Header.Set("Last-Event-Id", "1.BBBBBBBB.1.1") }, 401},
		"authorization": {func(r *http.Request) { r.Header.Set("Authorization", "Bearer abd") }, 401},
		"method":        {func(r *http.Request) { r.Method = http.MethodDelete }, 401},
		"path":          {func(r *http.Request) { r.URL.Path = "/mcp/other" }, 401},
		"query":         {func(r *http.Request) { r.URL.RawQuery = "x=2" }, 401},
		"none":          {func(r *http.Request) { r.Header.Del(Header) }, 401},
		"two":           {func(r *http.Request) { r.Header.Add(Header, r.Header.Get(Header)) }, 401},
		"no mac":        {func(r *http.Request) { cutHeader(r, macPart) }, 401},
		"part added": {func(r *http.Request) {
			setHeader(r, strings.Replace(r.Header.Get(Header), macPart, ";new=1"+macPart, 1))
		}, 401},
		"from": {func(r *http.Request) { setHeader(r, strings.Replace(r.Header.Get(Header), "AAAAAAAA", "CCCCCCCC", 1)) }, 401},
		"huge": {func(r *http.Request) { setHeader(r, r.Header.Get(Header)+strings.Repeat("A", maxEnvelope)) }, 401},
	} {
		t.Run(name, func(t *testing.T) {
			r := sealed(newGroup(t, edge, testKey), &Envelope{}, "")
			tc.alter(r)
			_, err := newGroup(t, holder, testKey).Open(r)
			if refusal, ok := err.(*RefusedError); !ok || refusal.Status != tc.status {
				t.Errorf("Open() = %v, want %d", err, tc.status)
			}
		})
	}
}

func cutHeader(r *http.Request, at string) {
	text, _, _ := strings.Cut(r.Header.Get(Header), at)
	setHeader(r, text)
}

func setHeader(r *http.Request, text string) { r.Header.Set(Header, text) }

func TestEnvelopeOfAnother(t *testing.T) {
	from := newGroup(t, edge, testKey)
	wrongTo := newGroup(t, replicas.Replica{Instance: "CCCCCCCC"}, testKey)
	if _, err := wrongTo.Open(sealed(from, &Envelope{}, "")); err == nil || err.(*RefusedError).Status != http.StatusMisdirectedRequest {
		t.Errorf("for another replica: %v, want 421", err)
	}
	if _, err := newGroup(t, holder, otherKey).Open(sealed(from, &Envelope{}, "")); err == nil || err.(*RefusedError).Status != http.StatusUnauthorized {
		t.Errorf("of another key: %v, want 401", err)
	}
	nobody := &Envelope{Identity: &mcp.Identity{Principal: mcp.Anonymous}}
	if _, err := newGroup(t, holder, testKey).Open(sealed(from, nobody, "")); err == nil {
		t.Error("the identity of an anonymous client was accepted")
	}
}

func TestEnvelopeOnce(t *testing.T) {
	from, to := newGroup(t, edge, testKey), newGroup(t, holder, testKey)
	r := sealed(from, &Envelope{}, "")
	text := r.Header.Get(Header)
	if _, err := to.Open(r); err != nil {
		t.Fatal(err)
	}
	r.Header.Set(Header, text)
	if _, err := to.Open(r); err == nil || !strings.Contains(err.Error(), "used before") {
		t.Errorf("the second time: %v", err)
	}
}

func TestEnvelopeExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := newGroup(t, edge, testKey), newGroup(t, holder, testKey)
		id := &mcp.Identity{Principal: "alice", Expires: time.Now().Add(3 * lifetime)}
		late, inTime := sealed(from, &Envelope{}, ""), sealed(from, &Envelope{}, "")
		time.Sleep(lifetime - time.Millisecond)
		if _, err := to.Open(inTime); err != nil {
			t.Errorf("in time: %v", err)
		}
		time.Sleep(time.Millisecond)
		if _, err := to.Open(late); err == nil || !strings.Contains(err.Error(), "clocks") {
			t.Errorf("late: %v", err)
		}
		time.Sleep(2 * lifetime)
		token := &mcp.Identity{Principal: "alice", Issuer: "https://id.example.com", Expires: time.Now().Add(-mcp.ClockSkew / 2)}
		if _, err := to.Open(sealed(from, &Envelope{Identity: token}, "")); err != nil {
			t.Errorf("with a token within the leeway of clocks: %v", err)
		}
		if token.Expires = time.Now().Add(-mcp.ClockSkew); !token.Accepted().After(time.Now()) {
			id = token
		}
		if _, err := to.Open(sealed(from, &Envelope{Identity: id}, "")); err == nil || !strings.Contains(err.Error(), "credential has expired") {
			t.Errorf("with an expired credential: %v", err)
		}
	})
}

func TestEnvelopeBody(t *testing.T) {
	from, to := newGroup(t, edge, testKey), newGroup(t, holder, testKey)
	r := sealed(from, &Envelope{Digest: digest([]byte("body"))}, "b0dy")
	if _, err := to.Open(r); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r.Body); err != ErrAltered || len(got) > 3 {
		t.Errorf("an altered body: %q, %v", got, err)
	}
	r = sealed(from, &Envelope{Digest: digest([]byte("body"))}, "body")
	r.ContentLength = -1
	if _, err := to.Open(r); err == nil {
		t.Error("a body of unknown length was accepted")
	}
}

// Each nonce counts once, in any order.
func TestReplays(t *testing.T) {
	var s replays
	now := time.Now()
	for _, n := range []uint64{5, 3, 4, windowSize, windowSize + 4, 6, 10 * windowSize, 9*windowSize + 1} {
		if s.accept("a", n, now) != nil {
			t.Errorf("%d is not new", n)
		}
		if err := s.accept("a", n, now); err != errReplayed {
			t.Errorf("%d twice = %v", n, err)
		}
	}
	for _, n := range []uint64{0, 5, 9 * windowSize, ^uint64(0)} {
		if s.accept("a", n, now) == nil {
			t.Errorf("%d is accepted", n)
		}
	}
	for i := range 2 * maxSenders {
		if err := s.accept("b"+string(rune(i)), 1, now); (err != nil) != (i >= maxSenders-1) || err == errReplayed {
			t.Fatalf("sender %d = %v", i, err)
		}
	}
	if len(s.by) != maxSenders {
		t.Errorf("%d senders, want %d", len(s.by), maxSenders)
	}
	if s.accept("late", 1, now.Add(time.Hour)) != nil {
		t.Error("senders of long ago have all places")
	}
}

// FuzzOpen opens any header: nothing is accepted that was not signed, and what is signed is
// read as it was written.
func FuzzOpen(f *testing.F) {
	f.Add("v=1;from=AAAAAAAA;to=BBBBBBBB;exp=1;nonce=1", "AAAA", true)
	f.Add("v=1;from=A;to=B;id=e30;net=10.0.0.0/8;addr=x;exp=9;nonce=2;body=x;new=1", "", true)
	f.Add("v=2;from=A;to=B;exp=-1;nonce=18446744073709551616", "", false)
	f.Add("v=1;v=1;=;;", "mac", false)
	g := newGroup(f, holder, testKey)
	f.Fuzz(func(t *testing.T, text, mac string, sign bool) {
		r := httptest.NewRequest(http.MethodPost, "/mcp/files", nil)
		header := text + macPart + mac
		if sign {
			sum := g.keys.Load().sign(text, r)
			header = string(appendMAC(nil, text, sum[:]))
		}
		r.Header[Header] = []string{header}
		e, err := g.Open(r)
		if err == nil && (!sign || e.To != holder.Instance) {
			t.Fatalf("Open(%q) = %+v", header, e)
		}
		if e, err := parse(text); err == nil {
			again, err := parse(e.text())
			if isPlain(e.From) && isPlain(e.To) && isPlain(e.Digest) && (err != nil || again.text() != e.text()) {
				t.Fatalf("parse(%q).text() = %q, %v", text, e.text(), err)
			}
		}
	})
}
