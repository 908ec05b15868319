package front

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func TestM2L18StateIsSealed(t *testing.T) {
	const oldKey, newKey = "the key of last month", "the key of this month"
	s, err := NewSealer(newKey, oldKey)
	if err != nil {
		t.Fatal(err)
	}
	want := State{Call: 1 << 63, Round: 7, Expires: time.Unix(1_800_000_000, 0), Binding: sha256.Sum256([]byte("x"))}
	text := s.Seal(want)
	if got, err := s.Open(text); err != nil || got != want {
		t.Fatalf("Open(Seal(%v)) = %v, %v", want, got, err)
	}
	if text == s.Seal(want) {
		t.Error("two seals of one state are equal")
	}
	if !strings.HasPrefix(text, "1."+s.instance+".") {
		t.Errorf("state %q does not begin with version and instance", text)
	}
	prefix, body := text[:strings.LastIndex(text, ".")+1], text[strings.LastIndex(text, ".")+1:]
	sealed, _ := base64.RawURLEncoding.DecodeString(body)
	for i := range sealed { // every bit counts
		sealed[i] ^= 1
		if _, err := s.Open(prefix + base64.RawURLEncoding.EncodeToString(sealed)); !errors.Is(err, ErrBadState) {
			t.Fatalf("byte %d changed: %v, want ErrBadState", i, err)
		}
		sealed[i] ^= 1
	}
	for name, bad := range map[string]string{
		"empty": "", "no parts": "x", "two parts": "1." + s.instance, "no base64": prefix + "*",
		"short": prefix + body[:8], "version": "2" + text[1:], "empty body": prefix,
	} {
		if _, err := s.Open(bad); !errors.Is(err, ErrBadState) {
			t.Errorf("%s: Open(%q) = %v, want ErrBadState", name, bad, err)
		}
	}
}

func TestM2L18KeysRotate(t *testing.T) {
	const a, b = "the key of last month", "the key of this month"
	before, _ := NewSealer(a)
	text := before.Seal(State{Call: 3})
	after, _ := NewSealer(b, a)
	after.instance = before.instance // the same process, had it kept its name
	if st, err := after.Open(text); err != nil || st.Call != 3 {
		t.Errorf("old key in the ring: %v, %v", st, err)
	}
	without, _ := NewSealer(b)
	without.instance = before.instance
	if _, err := without.Open(text); !errors.Is(err, ErrBadState) {
		t.Errorf("old key gone: %v, want ErrBadState", err)
	}
	other, _ := NewSealer(a)
	if _, err := other.Open(text); !errors.Is(err, ErrOtherState) {
		t.Errorf("another instance: %v, want ErrOtherState", err)
	}
	if _, err := NewSealer("short"); err == nil {
		t.Error("a short key was taken")
	}
}

func TestM2L18BindingTellsRequestsApart(t *testing.T) {
	base := mcp.Request{Method: "tools/call", Principal: "ada", Params: []byte(`{"name":"a","arguments":{"x":1,"y":2}}`)}
	same := base
	same.Params = []byte(`{"requestState":"s","arguments":{"y":2, "x":1},"_meta":{"k":1},"inputResponses":{},"name":"a"}`)
	if binding("s", &base) != binding("s", &same) {
		t.Error("the retry of a request is bound otherwise than the request")
	}
	for name, change := range map[string]func(*mcp.Request){
		"principal": func(r *mcp.Request) { r.Principal = "bob" },
		"method":    func(r *mcp.Request) { r.Method = "prompts/get" },
		"name":      func(r *mcp.Request) { r.Params = []byte(`{"name":"b","arguments":{"x":1,"y":2}}`) },
		"argument":  func(r *mcp.Request) { r.Params = []byte(`{"name":"a","arguments":{"x":1,"y":3}}`) },
	} {
		other := base
		change(&other)
		if binding("s", &base) == binding("s", &other) {
			t.Errorf("another %s is bound the same", name)
		}
	}
	if binding("s", &base) == binding("t", &base) {
		t.Error("another server is bound the same")
	}
}
