package pin

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errGone = errors.New("nobody is there")

// An engine keeps records in memory. It may be away, forget, and be written by somebody between
// a reading and a writing.
type engine struct {
	mu      sync.Mutex
	away    bool
	kept    map[string][]byte
	version int
	between func()
}

func (e *engine) set(f func(*engine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e)
}

func (e *engine) Kept(_ context.Context, key string) ([]byte, string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.away {
		return nil, "", errGone
	}
	if e.kept[key] == nil {
		return nil, "", nil
	}
	return e.kept[key], strconv.Itoa(e.version), nil
}

func (e *engine) Keep(_ context.Context, key, version string, record []byte) (string, error) {
	if e.between != nil {
		between := e.between
		e.between = nil
		between()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.away {
		return "", errGone
	}
	is := ""
	if e.kept[key] != nil {
		is = strconv.Itoa(e.version)
	}
	if is != version {
		return "", nil
	}
	e.version++
	e.kept[key] = record
	return strconv.Itoa(e.version), nil
}

func newEngine() *engine { return &engine{kept: make(map[string][]byte)} }

// replica returns the pins of a replica that has joined.
func (e *engine) replica(t *testing.T, former Store) *Pins {
	t.Helper()
	p, err := Open(Options{Store: NewShared(e, former, slog.New(slog.DiscardHandler)), Server: "files", Refuse: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What one replica has accepted holds for all, and for those that start later; what a person
// accepts, too, a second later.
func TestReplicasShareWhatIsPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		first, second := e.replica(t, nil), e.replica(t, nil)
		list(first, true, good)
		if got := list(second, true, evil, more); len(got) != 0 || !second.Refuses("read") {
			t.Errorf("another replica accepts %v as its first list", got)
		}
		if late := e.replica(t, nil); !late.Refuses("write") || len(list(late, true, good)) != 1 {
			t.Error("a replica that starts later has not what was accepted")
		}
		_, err := Update(t.Context(), NewShared(e, nil, slog.New(slog.DiscardHandler)), "files", func(f *File) {
			f.Accept(Change{Tool: "read", Is: []byte(evil)})
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for _, p := range []*Pins{first, second} {
			if p.Refuses("read") || len(list(p, true, evil)) != 1 || len(list(p, true, good)) != 1 {
				t.Error("what a person accepted is refused")
			}
		}
	})
}

// Of two first lists at the same time one counts.
func TestFirstListsAtTheSameTime(t *testing.T) {
	e := newEngine()
	first, second := e.replica(t, nil), e.replica(t, nil)
	e.between = func() { list(second, true, good) }
	if got := list(first, true, evil); len(got) != 0 || !first.Refuses("read") {
		t.Errorf("the slower replica shows %v", got)
	}
	if got := list(second, true, good); len(got) != 1 {
		t.Error("what the faster replica has accepted is refused")
	}
}

// Two persons who accept at the same time overwrite nothing of each other.
func TestUpdatesAtTheSameTime(t *testing.T) {
	e := newEngine()
	for _, s := range []Store{NewShared(e, nil, slog.New(slog.DiscardHandler)), Folder(t.TempDir())} {
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				_, err := Update(context.Background(), s, "files", func(f *File) {
					f.Accept(Change{Tool: fmt.Sprint("t", i), Is: []byte(fmt.Sprintf(`{"name":"t%d"}`, i))})
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if f, _, err := s.Load(t.Context(), "files"); err != nil || len(f.Tools) != 3 {
			t.Errorf("%T: Load = %+v, %v, want three tools", s, f, err)
		}
	}
}

// What was pinned in the folder of a replica, before there was an engine, counts at once.
func TestFolderMovesToTheEngine(t *testing.T) {
	e, dir := newEngine(), writeOld(t, plain)
	p := e.replica(t, dir)
	if got := list(p, true, other); len(got) != 0 {
		t.Error("the first list is accepted although the folder has another one")
	}
	elsewhere := e.replica(t, nil)
	if got := list(elsewhere, true, runs); len(got) != 1 {
		t.Error("another replica does not read what was pinned in the old form")
	}
}

// An engine that has forgotten everything is told again what was accepted, and no new list is.
func TestEngineForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		p := e.replica(t, nil)
		list(p, true, good)
		e.set(func(e *engine) { clear(e.kept) })
		time.Sleep(time.Second)
		if got := list(p, true, evil); len(got) != 0 {
			t.Error("a new list is accepted after the engine forgot")
		}
		if got := list(e.replica(t, nil), true, evil); len(got) != 0 {
			t.Error("the engine was not told again")
		}
	})
}

// As long as it is not known what was accepted, nothing is listed or called, with a reason that
// is another one than that of a changed tool; once it is known, an engine that is away changes
// nothing. With warn everything goes on.
func TestEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		list(e.replica(t, nil), true, good)
		e.set(func(e *engine) { e.away = true })
		p := e.replica(t, nil)
		for _, tool := range []string{"read", ""} {
			if err := p.Refusal(tool); err == nil || errors.Is(err, ErrNotAccepted) {
				t.Errorf("Refusal(%q) without an engine = %v, want that it can't be read", tool, err)
			}
		}
		warns, err := Open(Options{Store: NewShared(e, nil, slog.New(slog.DiscardHandler)), Server: "files"})
		if err != nil || warns.Refusal("read") != nil || len(list(warns, true, evil)) != 1 {
			t.Errorf("with warn: %v, want everything", err)
		}
		e.set(func(e *engine) { e.away = false })
		time.Sleep(time.Second)
		if err := errors.Join(p.Refusal(""), p.Refusal("read")); err != nil {
			t.Errorf("Refusal when the engine is back = %v", err)
		}
		e.set(func(e *engine) { e.away = true })
		time.Sleep(time.Minute)
		if len(list(p, true, good)) != 1 || len(list(p, true, evil)) != 0 || !errors.Is(p.Refusal("read"), ErrNotAccepted) {
			t.Error("what was accepted is not known any more when the engine is away")
		}
	})
}

// A first list that could not be stored is stored later, and counts until then.
func TestFirstListIsStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		p := e.replica(t, nil)
		e.between = func() { e.set(func(e *engine) { e.away = true }) }
		list(p, true, good)
		if got := list(p, true, evil); len(got) != 0 {
			t.Error("what was accepted, and could not be stored, does not count")
		}
		e.set(func(e *engine) { e.away = false })
		time.Sleep(time.Second)
		list(p, true, good)
		if got := list(e.replica(t, nil), true, evil); len(got) != 0 {
			t.Error("what was accepted was not stored later")
		}
	})
}

// Definitions are left out where an engine has no room for them; the digests are there.
func TestSharedFilesAreBounded(t *testing.T) {
	f := newFile("files")
	for i := range 3 {
		random := make([]byte, maxShared/2)
		_, _ = rand.Read(random) // never fails
		d, err := json.Marshal(map[string]string{"name": fmt.Sprint("t", i), "description": base64.StdEncoding.EncodeToString(random)})
		if err != nil {
			t.Fatal(err)
		}
		f.Accept(Change{Tool: fmt.Sprint("t", i), Is: d})
	}
	data, err := f.pack()
	if err != nil || len(data) > maxShared {
		t.Fatalf("pack = %d bytes, %v", len(data), err)
	}
	got, err := unpack("files", data)
	if err != nil || len(got.Tools) != 3 || got.Tools["t1"].Definition != nil || got.Tools["t1"].Digests[0] != f.Tools["t1"].Digests[0] {
		t.Errorf("unpack = %+v, %v", got, err)
	}
	if _, err := unpack("other", data); err == nil || !strings.Contains(err.Error(), `server "files"`) {
		t.Errorf("unpack for another server: %v", err)
	}
}
