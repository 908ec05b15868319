package requeststate

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
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
		if _, err := s.Open(prefix + base64.RawURLEncoding.EncodeToString(sealed)); !errors.Is(err, ErrInvalid) {
			t.Fatalf("byte %d changed: %v, want ErrInvalid", i, err)
		}
		sealed[i] ^= 1
	}
	for name, bad := range map[string]string{
		"empty": "", "no parts": "x", "two parts": "1." + s.instance, "no base64": prefix + "*",
		"short": prefix + body[:8], "version": "2" + text[1:], "empty body": prefix,
	} {
		if _, err := s.Open(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: Open(%q) = %v, want ErrInvalid", name, bad, err)
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
	if _, err := without.Open(text); !errors.Is(err, ErrInvalid) {
		t.Errorf("old key gone: %v, want ErrInvalid", err)
	}
	other, _ := NewSealer(a)
	if _, err := other.Open(text); !errors.Is(err, ErrOtherInstance) {
		t.Errorf("another instance: %v, want ErrOtherInstance", err)
	}
	if _, err := NewSealer("short"); err == nil {
		t.Error("a short key was taken")
	}
}

// FuzzOpenState knows of one state that was sealed before: nothing else opens. What is
// sealed opens as it was, and for no other key.
func FuzzOpenState(f *testing.F) {
	s, other := fuzzedSealer(f, "a key of a gateway"), fuzzedSealer(f, "a key of another")
	// Sealed once, so that what the fuzzer has kept stays close to it.
	const sealed = "1.INSTANCE.6jKK1GPAkJ6ONeg0DmhBPhlUTb8ZO8uAIxGZ0nYP8ieesEwx0LPY-c5iW1_66DT_b9b-MLP3lwQT9RbbHu8ec7quuHl5_gEjJ2921cgJW1A"
	if _, err := s.Open(sealed); err != nil {
		f.Fatal(err)
	}
	for i, text := range []string{"", sealed, sealed + "\n", sealed + "=", sealed[:20], "1.ELSEWHER." + sealed[11:]} {
		f.Add(text, uint64(i), uint32(i), int64(i), []byte(text))
	}
	f.Fuzz(func(t *testing.T, text string, call uint64, round uint32, expires int64, binding []byte) {
		if st, err := s.Open(text); err == nil && text != sealed {
			t.Errorf("Open(%q) = %v", text, st)
		}
		st := State{Call: call, Round: round, Expires: time.Unix(expires, 0)}
		copy(st.Binding[:], binding)
		fresh := s.Seal(st)
		if got, err := s.Open(fresh); err != nil || got != st {
			t.Errorf("Open(Seal(%v)) = %v, %v", st, got, err)
		}
		if got, err := other.Open(fresh); !errors.Is(err, ErrInvalid) {
			t.Errorf("another key opens %v: %v, %v", st, got, err)
		}
	})
}

// fuzzedSealer returns a Sealer of an instance that is the same in every process.
func fuzzedSealer(f *testing.F, key string) *Sealer {
	s, err := NewSealer(key)
	if err != nil {
		f.Fatal(err)
	}
	s.instance = "INSTANCE"
	return s
}

// A server's state comes back as it was for whom it was bound, and for nobody else: not for
// a longer or shorter one, not under another key, not without its tag.
func TestStateOfAServerIsBound(t *testing.T) {
	const oldKey, newKey = "the key of last month", "the key of this month"
	s, _ := NewSealer(newKey, oldKey)
	for _, state := range []string{"", "abc", "with~mark", `{"é":"\u0000"}`} {
		text := s.Bind(state, "alice")
		if got, err := s.Unbind(text, "alice"); err != nil || got != state {
			t.Errorf("Unbind(Bind(%q)) = %q, %v", state, got, err)
		}
		body, tag := text[:strings.LastIndex(text, "~")], text[strings.LastIndex(text, "~")+1:]
		for name, bad := range map[string]string{
			"without a tag": state, "empty": "", "longer": body + "x~" + tag, "tag cut": text[:len(text)-1], "tag longer": text + "A",
			"no tag": body + "~", "another spelling of the tag": body + "~" + tag[:42] + string(tag[42]+1), "bound twice": s.Bind(text, "alice"),
		} {
			if got, err := s.Unbind(bad, "alice"); name != "bound twice" && err != ErrInvalid || err == nil && got == state {
				t.Errorf("%s: Unbind(%q) = %q, %v, want ErrInvalid", name, bad, got, err)
			}
		}
		if got, err := s.Unbind(text, "bob"); err != ErrInvalid {
			t.Errorf("another binding: %q, %v, want ErrInvalid", got, err)
		}
	}
	sealed := s.Seal(State{})
	for text, want := range map[string]bool{sealed: true, s.Bind(sealed, "alice"): false, s.Bind("", "alice"): false, "2" + sealed[1:]: false, "": false, "1.AAAAAAAA": false} {
		if IsSealed(text) != want {
			t.Errorf("IsSealed(%q) = %v", text, !want)
		}
	}
	before, _ := NewSealer(oldKey)
	if got, err := s.Unbind(before.Bind("x", "alice"), "alice"); err != nil || got != "x" {
		t.Errorf("old key in the ring: %q, %v", got, err)
	}
	if got, err := before.Unbind(s.Bind("x", "alice"), "alice"); err != ErrInvalid {
		t.Errorf("a key that is not in the ring: %q, %v, want ErrInvalid", got, err)
	}
}
