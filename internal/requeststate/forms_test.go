package requeststate

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A requestState that another version has sealed or bound is opened.
func TestForms(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	s, err := NewSealerOf("AAAAAAAA", "a key of all replicas")
	if err != nil {
		t.Fatal(err)
	}
	want := State{Call: 1 << 63, Round: 7, Expires: time.Unix(4102444800, 0), Binding: sha256.Sum256([]byte("x"))}
	if got, err := s.Open(forms.Text("sealed")); err != nil || got != want {
		t.Errorf("a sealed state is read as %+v, %v, want %+v", got, err, want)
	}
	forms.Want("bound", s.Bind("of a server", "ada"))
	if got, err := s.Unbind(forms.Text("bound"), "ada"); err != nil || got != "of a server" {
		t.Errorf("a bound state is read as %q, %v", got, err)
	}
	if _, err := s.Open(forms.Text("later")); err != ErrInvalid {
		t.Errorf("a state of a later version: %v, want ErrInvalid", err)
	}
}
