package peer

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// formRequest is the request of all envelopes in testdata/forms.
func formRequest() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp/files%2Fa?x=1&y", strings.NewReader("body"))
	r.Header.Set("Mcp-Session-Id", "1BBBBBBBB-secret")
	r.Header.Set("Last-Event-Id", "1.BBBBBBBB.1.1")
	r.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	r.Header.Set("Authorization", "Bearer abc")
	r.Header.Set("Content-Type", "application/json")
	return r
}

// envelopesOfForms are what the forms say, all of which begin at the begin of a bubble's time.
func envelopesOfForms() map[string]*Envelope {
	id := &mcp.Identity{Principal: "alice", Issuer: "https://issuer", Subject: "a", Scopes: []string{"read", "write"},
		Claims: map[string]json.RawMessage{"groups": json.RawMessage(`["a","b"]`)}, Expires: time.Unix(4102444800, 5)}
	return map[string]*Envelope{
		"envelope":           {Net: netip.MustParsePrefix("2001:db8::/64"), Addr: "[2001:db8::1]:4000"},
		"envelope/identity":  {Identity: id, Addr: "10.0.0.1:99", Moved: true},
		"envelope/principal": {Identity: &mcp.Identity{Principal: "bob"}, Net: netip.MustParsePrefix("10.0.0.1/32")},
		"envelope/body":      {Digest: digest([]byte("body"))},
		"envelope/absent":    {Net: netip.MustParsePrefix("10.0.0.1/32"), Unauthenticated: true},
	}
}

// An envelope, its code included, is written as other versions read it, and read as they write
// it.
func TestForms(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	synctest.Test(t, func(t *testing.T) { // at a time that is always the same
		nonce := uint64(0)
		for _, name := range []string{"envelope", "envelope/identity", "envelope/principal", "envelope/body", "envelope/absent"} {
			from, to := newGroup(t, edge, testKey), newGroup(t, holder, otherKey+"!", testKey)
			nonce++
			from.nonce.Store(nonce)
			sent := envelopesOfForms()[name]
			r := formRequest()
			from.seal(sent, holder, r)
			forms.Want(name, r.Header.Get(Header))

			r = formRequest()
			setHeader(r, forms.Text(name))
			got, err := to.Open(r)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			wantEnvelope(t, name, got, sent)
		}
	})
	t.Run("later", func(t *testing.T) { wantLater(t, forms) })
	t.Run("hello", func(t *testing.T) { wantHello(t, forms) })
}

func wantEnvelope(t *testing.T, name string, got, sent *Envelope) {
	t.Helper()
	for _, e := range []*Envelope{got, sent} {
		e.Expires = e.Expires.UTC()
		if e.Identity != nil {
			e.Identity.Expires = e.Identity.Expires.UTC()
		}
	}
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("%s is read as %+v, want %+v", name, got, sent)
	}
}

// Parts that a later version adds are skipped, members of an identity too. Another version of
// the envelope is refused, and the sender learns why.
func wantLater(t *testing.T, forms *bridgetest.Forms) {
	synctest.Test(t, func(t *testing.T) {
		to := newGroup(t, holder, testKey)
		r := formRequest()
		setHeader(r, forms.Text("envelope/later"))
		if e, err := to.Open(r); err != nil || e.From != edge.Instance || e.Identity == nil || e.Identity.Principal != "carol" {
			t.Errorf("a later envelope is read as %+v, %v", e, err)
		}
		r = formRequest()
		setHeader(r, forms.Text("envelope/version-2"))
		_, err := to.Open(r)
		if err == nil || !strings.Contains(err.Error(), "compare the versions") {
			t.Errorf("an envelope of version 2: %v", err)
		}
		w := httptest.NewRecorder()
		Refuse(w, err)
		if got := w.Header().Get(Header); w.Code != http.StatusUnauthorized || got != forms.Text("envelope/version-2/refused") {
			t.Errorf("it is answered with %d, %q", w.Code, got)
		}
	})
}

// A hello and its proof, and what a later version may say of itself.
func wantHello(t *testing.T, forms *bridgetest.Forms) {
	self := holder
	self.Version = "v1.2.3"
	draining, later, serving := self, self, self
	draining.Draining, later.Revision = true, 7
	serving.Revision, serving.Ready, serving.TLS = 3, true, true
	serving.Servers = replicas.ServersOf(slices.Values([]string{"files", "weather"}))
	e := &Envelope{From: edge.Instance, Expires: time.Unix(4102444800, 0), Nonce: 9}
	for name, want := range map[string]replicas.Replica{"hello": self, "hello/draining": draining, "hello/revision": later, "hello/serving": serving, "hello/later": later} {
		from, to := newGroup(t, edge, testKey), newGroup(t, want, testKey)
		text := forms.Text(name)
		if name == "hello/later" {
			forms.Want(name+"/proof", proofOf(to.keys.Load().keys[0], e, []byte(text)))
		} else {
			w := httptest.NewRecorder()
			to.ServeHello(w, httptest.NewRequest(http.MethodGet, HelloPath, nil), e)
			forms.Want(name, w.Body.String())
			forms.Want(name+"/proof", w.Header().Get(proofHeader))
		}
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{proofHeader: {forms.Text(name + "/proof")}}}
		if got, err := from.greeted(want.Addr, e, resp, []byte(text)); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// Ids name the instance that made them in the form that all versions read.
func TestInstancesOfIDs(t *testing.T) {
	for name, tt := range map[string]struct{ got, want string }{
		"session":               {OfSession("1AAAAAAAA-0123456789abcdef"), "AAAAAAAA"},
		"state":                 {OfState("1.AAAAAAAA.sealed"), "AAAAAAAA"},
		"state of a server":     {OfState("abc~tag"), ""},
		"session of a version":  {OfSession("2AAAAAAAA-0123456789abcdef"), ""},
		"state of a version":    {OfState("2.AAAAAAAA.sealed"), ""},
		"state with more parts": {OfState("1.AAAAAAAA.4.5.new"), "AAAAAAAA"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", name, tt.got, tt.want)
		}
	}
}

// A replica that does not understand an envelope is told apart from one with another key.
func TestRefusalOfVersion(t *testing.T) {
	gate := newGate(newGroup(t, edge, testKey), holder)
	for why, want := range map[string]string{firstPart: "compare the versions", "v=9": "compare the versions", "refused": "compare replicas.keys"} {
		if err := gate.refusal(why); !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", why, err, want)
		}
	}
}
