package remember

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// records are Records of this process.
type records map[string][]byte

func (r records) Get(_ context.Context, key string) ([]byte, error) {
	if data, ok := r[key]; ok {
		return data, nil
	}
	return nil, errors.New("not found")
}

func (r records) Put(_ context.Context, key string, record []byte, _ time.Duration) error {
	r[key] = record
	return nil
}

// A list is given back as it was kept, but for white space, and no other one is.
func TestLists(t *testing.T) {
	s, _ := newStore(t)
	shared := &Shared{Records: make(records), Logger: slog.New(slog.DiscardHandler)}
	for name, l := range map[string]*Lists{"store": {Store: s}, "shared": {Store: shared}, "none": {Store: (*Store)(nil)}} {
		definitions := map[string]string{"files": "a", "docs": "b", "secret": ""}
		l.Definition, l.Logger = func(server string) string { return definitions[server] }, slog.New(slog.DiscardHandler)
		req := &mcp.Request{Principal: "ada", Profile: mcp.Profile{Capabilities: json.RawMessage(`{"a":1,"b":2}`)}}
		const items = `[{"name":"<&>","x":9007199254740993}, {}]`
		l.Remember("files", req, "tools/list", []byte(items))
		l.Remember("secret", req, "tools/list", []byte(items))
		l.Remember("docs", req, "tools/list", []byte(`{}`)) // is no list
		respelled, other, poor := *req, *req, *req
		respelled.Profile.Capabilities, other.Principal, poor.Profile.Capabilities = json.RawMessage(`{"b":2, "a":1}`), "bob", nil
		want := strings.ReplaceAll(items, " ", "")
		if name == "none" {
			want = ""
		}
		for _, tt := range []struct {
			server, method string
			req            *mcp.Request
			want           string
		}{
			{"files", "tools/list", req, want}, {"files", "tools/list", &respelled, want}, {"files", "tools/list", &other, ""}, {"files", "tools/list", &poor, ""},
			{"files", "prompts/list", req, ""}, {"docs", "tools/list", req, ""}, {"secret", "tools/list", req, ""},
		} {
			if got := string(l.Recall(tt.server, tt.req, tt.method)); got != tt.want {
				t.Errorf("%s: %s of %s for %s is %s, want %s", name, tt.method, tt.server, tt.req.Principal, got, tt.want)
			}
		}
		definitions["files"] = "c"
		if got := l.Recall("files", req, "tools/list"); got != nil {
			t.Errorf("%s: configured otherwise, it lists %s", name, got)
		}
	}
}

// A list is not a record, one that was tampered with is none, and neither is an old one.
func TestListsAreChecked(t *testing.T) {
	s, log := newStore(t)
	k := List{Definition: "a", Method: "tools/list"}.Key()
	kept := func() {
		t.Helper()
		if err := s.KeepList(k, []byte(`[1]`)); err != nil {
			t.Fatal(err)
		}
	}
	kept()
	if _, ok := s.Lookup(k); ok {
		t.Error("a list is a record")
	}
	keep(t, s, aKey, legacy)
	if _, ok := s.LookupList(aKey); ok {
		t.Error("a record is a list")
	}
	whole, err := encodeList(k, []byte(`[1]`), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{``, `{}`,
		strings.Replace(string(whole), `"format":1`, `"format":2`, 1), strings.Replace(string(whole), k.String(), aKey.String(), 1), strings.Replace(string(whole), `[1]`, `{}`, 1)} {
		if err := os.WriteFile(s.path(k), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if items, ok := s.LookupList(k); ok {
			t.Errorf("%s lists %s", bad, items)
		}
	}
	if !strings.Contains(log.String(), "remembered server not read") {
		t.Errorf("logged %s", log)
	}
	kept()
	if err := s.KeepList(k, []byte(`["`+strings.Repeat("x", maxFile)+`"]`)); err == nil {
		t.Error("a huge list is kept")
	}
	if _, ok := s.LookupList(k); ok {
		t.Error("the former list is still there")
	}
	synctest.Test(t, func(t *testing.T) {
		kept()
		time.Sleep(MaxAge)
		if _, ok := s.LookupList(k); !ok {
			t.Error("a list of a day is forgotten")
		}
		time.Sleep(time.Second)
		if _, ok := s.LookupList(k); ok {
			t.Error("an old list is remembered")
		}
	})
}
