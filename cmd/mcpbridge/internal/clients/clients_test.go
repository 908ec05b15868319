package clients

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What stands in the file can be played, and says where it is from.
func TestEntries(t *testing.T) {
	dec := json.NewDecoder(bytes.NewReader(embedded))
	dec.DisallowUnknownFields()
	var all []Client
	if err := dec.Decode(&all); err != nil || len(all) == 0 {
		t.Fatalf("clients.json: %d entries, %v", len(all), err)
	}
	seen := make(map[string]bool)
	for _, c := range all {
		t.Run(c.ID, func(t *testing.T) {
			if c.ID == "" || c.ID == "all" || seen[c.ID] {
				t.Errorf("id %q is empty, taken or all", c.ID)
			}
			seen[c.ID] = true
			if date, err := time.Parse(time.DateOnly, c.Date); err != nil || date.Year() < 2024 || c.Version == "" {
				t.Errorf("version %q of %q, want both: %v", c.Version, c.Date, err)
			}
			if len(c.Source) == 0 {
				t.Error("no source")
			}
			for _, s := range c.Source {
				if u, err := url.Parse(s); err != nil || u.Scheme != "https" || u.Host == "" || u.Path == "" {
					t.Errorf("source %q is no https URL: %v", s, err)
				}
			}
			if (c.Discover == nil) != (c.Modern == nil) || c.Discover == nil && c.Legacy == nil {
				t.Error("want discover and modern, or legacy, or all of them")
			}
			checkMessages(t, &c)
		})
	}
}

func checkMessages(t *testing.T, c *Client) {
	t.Helper()
	messages := append(append([]Message{}, c.Legacy...), c.Modern...)
	if c.Discover != nil {
		messages = append(messages, *c.Discover)
	}
	lists := 0
	for _, m := range messages {
		if m.Body == nil {
			if m.Verb != http.MethodGet {
				t.Errorf("%+v has neither a body nor GET", m)
			}
			continue
		}
		parsed, err := wire.Parse(m.Body, wire.Options{})
		if err != nil || parsed.Method == "" {
			t.Errorf("%s is no request or notification: %v", m.Body, err)
		}
		if parsed.Method == spec.MethodToolsList {
			lists++
		}
		if m.Verb != "" {
			t.Errorf("%s has the verb %s: what has a body is a POST", m.Body, m.Verb)
		}
	}
	if lists == 0 && c.ID != "claude.ai-probe" { // which ends with initialize
		t.Error("the opening has no tools/list")
	}
}

func TestSelect(t *testing.T) {
	if c, err := Select("go-sdk"); err != nil || len(c) != 1 || c[0].ID != "go-sdk" || c[0].Discover == nil {
		t.Errorf("Select(go-sdk) = %+v, %v", c, err)
	}
	if c, err := Select(AllClients); err != nil || len(c) != len(All()) {
		t.Errorf("Select(all) = %d clients, %v, want %d", len(c), err, len(All()))
	}
	if _, err := Select("netscape"); err == nil || !strings.Contains(err.Error(), "claude-code, ") {
		t.Errorf("Select(netscape) = %v, want an error that names those that there are", err)
	}
}
