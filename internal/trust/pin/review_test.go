package pin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A person looks at what differs from what was accepted, and accepts it as it was shown.
func TestReview(t *testing.T) {
	p, err := Open(Options{Store: Folder(t.TempDir()), Server: "files", Refuse: true})
	if err != nil {
		t.Fatal(err)
	}
	list(p, true, good)
	look := func(definitions ...string) (*Review, []Change) {
		t.Helper()
		r, err := p.Review(func() error {
			list(p, true, definitions...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		changes, err := r.Changes()
		if err != nil {
			t.Fatal(err)
		}
		return r, changes
	}
	if _, changes := look(same); len(changes) != 0 {
		t.Errorf("the same tools differ: %+v", changes)
	}
	r, changes := look(evil, more)
	if len(changes) != 2 || string(changes[0].Was) != good || string(changes[0].Is) != evil || changes[1].Tool != "write" || !r.Knows("read") || r.Knows("write") {
		t.Fatalf("changes = %+v", changes)
	}
	// It has changed since it was shown: nothing is accepted.
	again, _ := look(strings.Replace(evil, "all", "everything", 1), more)
	both := map[string]string{"read": Digest([]byte(evil)), "write": Digest([]byte(more))}
	if _, err := again.Accept(t.Context(), both); !errors.Is(err, ErrChangedAgain) || !p.Refuses("read") || !p.Refuses("write") {
		t.Errorf("accepting what has changed again = %v", err)
	}
	r, _ = look(evil, more)
	if got, err := r.Accept(t.Context(), map[string]string{"read": Digest([]byte(evil))}); err != nil || len(got) != 1 || p.Refuses("read") || !p.Refuses("write") {
		t.Errorf("accepting read = %+v, %v", got, err)
	}
	if shown := list(p, true, evil, more); len(shown) != 1 {
		t.Errorf("shown %q", shown)
	}
	if _, changes := look(evil); len(changes) != 0 {
		t.Errorf("what the server does not have is a change: %+v", changes)
	}
}

// What a Review keeps is bounded, and nothing is kept once it is over.
func TestReviewIsBounded(t *testing.T) {
	p, err := Open(Options{Store: Folder(t.TempDir()), Server: "files"})
	if err != nil {
		t.Fatal(err)
	}
	large := fmt.Sprintf(`{"name":"large","description":%q}`, strings.Repeat("x", maxReview/2))
	r, err := p.Review(func() error {
		list(p, false, large, large, large)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "mcpbridge pin files") || len(r.definitions) > 2 {
		t.Errorf("a Review of %d bytes = %v", r.bytes, err)
	}
	before := len(r.definitions)
	list(p, true, more)
	if len(r.definitions) != before || len(p.reviews) != 0 {
		t.Error("a Review that is over goes on")
	}
	if _, err := p.Review(func() error { return errors.New("gone") }); err == nil || len(p.reviews) != 0 {
		t.Errorf("a server that can't be asked = %v", err)
	}
}
