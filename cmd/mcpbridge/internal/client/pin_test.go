package client

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
)

const (
	editWas = `{"name":"edit_note","description":"Adds a note.","title":"Edit","inputSchema":{"type":"object"}}`
	editIs  = "{\"name\":\"edit_note\",\"description\":\"Adds\u202e it.\",\"annotations\":{\"destructiveHint\":true},\"inputSchema\":{ \"type\": \"object\" }}"
	search  = `{"name":"search","description":"Finds notes."}`
)

// A pinned is a server with tools, and what was accepted of it.
type pinned struct {
	*script
	store pin.Store
	log   config.Audit
}

// newPinned returns a server that has edit_note, otherwise than it was accepted, and search, which
// is new; a tool that was accepted is gone.
func newPinned(t *testing.T) *pinned {
	t.Helper()
	p := &pinned{&script{answers: map[string]string{"tools/list": `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`}}, pin.Folder(t.TempDir()), config.Audit{}}
	_, err := pin.Update(t.Context(), p.store, "book", func(f *pin.File) {
		f.Accept(pin.Change{Tool: "edit_note", Is: []byte(editWas)})
		f.Accept(pin.Change{Tool: "old", Is: []byte(`{"name":"old"}`)})
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pin compares its tools, and returns what is printed.
func (p *pinned) pin(t *testing.T, accept, asJSON bool, tools ...string) (string, error) {
	t.Helper()
	w := p.start(t)
	w.AsJSON = asJSON
	g := &Pinning{Server: "book", Store: p.store, Accept: accept, Audit: p.log}
	for _, definition := range []string{editIs, search} { // as what connects to the server hears them
		g.Listed([]byte(definition))
	}
	err := w.Pin(t.Context(), g, tools)
	out, _ := w.printed()
	return out, err
}

// A person sees what has changed, member by member, and nothing of it can steer the terminal.
// What is named is accepted alone.
func TestPinTellsWhatChanged(t *testing.T) {
	const (
		changed = "changed  edit_note\n  - description: \"Adds a note.\"\n  - title: \"Edit\"\n  + description: \"Adds\\u202e it.\"\n  + annotations: {\"destructiveHint\":true}\n"
		added   = "new      search\n  + name: \"search\"\n  + description: \"Finds notes.\"\n"
		gone    = "gone     old\n"
		differ  = "tools of book that differ from what was accepted: "
		step    = "; accept them with --accept"
		none    = "nothing differs from what was accepted\n"
	)
	p := newPinned(t)
	for _, tt := range []struct {
		name      string
		accept    bool
		tools     []string
		want, err string
	}{
		{"all", false, nil, changed + gone + added, differ + "3" + step},
		{"some", false, []string{"old", "edit_note"}, changed + gone, differ + "2" + step},
		{"one that did not change", false, []string{"other"}, none, ""},
		{"some are accepted", true, []string{"edit_note"}, changed + "tools accepted: 2\n", ""},
		{"the others still differ", false, nil, gone + added, differ + "2" + step},
		{"all are accepted", true, nil, gone + added + "tools accepted: 2\n", ""},
		{"nothing differs then", false, nil, none, ""},
	} {
		out, err := p.pin(t, tt.accept, false, tt.tools...)
		if out != tt.want || tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err) {
			t.Errorf("%s: Pin = %v, and prints\n%s\nwant %q, and\n%s", tt.name, err, out, tt.err, tt.want)
		}
		// Some of the tools are no list of all.
		if f, _, err := p.store.Load(t.Context(), "book"); err != nil || f.Complete && len(tt.tools) > 0 || !f.Complete && tt.accept && len(tt.tools) == 0 {
			t.Errorf("%s: what was accepted is complete: %v, %v", tt.name, f.Complete, err)
		}
	}
	// Some servers list tools to clients alone that can answer what these ask.
	for i, want := range []string{`"io.modelcontextprotocol/clientCapabilities":` + string(everything), `"io.modelcontextprotocol/clientCapabilities":{}`} {
		if !strings.Contains(p.body[i], want) {
			t.Errorf("question %d is %s, want %s in it", i, p.body[i], want)
		}
	}
}

// Programs read both definitions, and nothing that is for people.
func TestPinAsJSON(t *testing.T) {
	out, err := newPinned(t).pin(t, true, true)
	var read []struct{ Tool, Was, Is any }
	if failed := json.Unmarshal([]byte(out), &read); failed != nil || err != nil || len(read) != 3 {
		t.Fatalf("Pin = %v, and prints %s (%v)", err, out, failed)
	}
	description := func(definition any) any {
		members, _ := definition.(map[string]any)
		return members["description"]
	}
	if c := read[0]; c.Tool != "edit_note" || description(c.Was) != "Adds a note." || description(c.Is) != "Adds\u202e it." {
		t.Errorf("what has changed is %+v", c)
	}
	if gone, added := read[1], read[2]; gone.Tool != "old" || gone.Was == nil || gone.Is != nil || added.Tool != "search" || added.Was != nil || added.Is == nil {
		t.Errorf("what is gone is %+v, and new %+v", gone, added)
	}
	for _, key := range []string{`"tool":`, `"was":`, `"is":`} {
		if strings.Count(strings.ReplaceAll(out, " ", ""), key) < 2 {
			t.Errorf("%s is missing in %s", key, out)
		}
	}
}

// A server that can't be asked has not lost its tools.
func TestPinOfAServerThatFails(t *testing.T) {
	p := newPinned(t)
	p.answers["tools/list"] = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the disk is away"}}`
	if out, err := p.pin(t, true, false); err == nil || !strings.HasSuffix(err.Error(), ": the disk is away (code -32603)") || out != "" {
		t.Errorf("Pin = %v, and prints %q, want the error alone", err, out)
	}
	if f, _, err := p.store.Load(t.Context(), "book"); err != nil || len(f.Tools) != 2 || f.Tools["old"].Definition == nil {
		t.Errorf("accepted are %+v, %v, want what was", f, err)
	}
}

// Who accepts tools has a line for each.
func TestAuditOfPins(t *testing.T) {
	p := newPinned(t)
	p.log = config.Audit{File: filepath.Join(t.TempDir(), "audit")}
	if out, err := p.pin(t, true, false); err != nil || !strings.HasSuffix(out, "tools accepted: 2\n") {
		t.Fatalf("Pin = %v, and prints %q", err, out)
	}
	text, err := os.ReadFile(p.log.File)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("the log is\n%s\nwant a line for each change", text)
	}
	const accepted, forgotten = "is accepted by mcpbridge pin", "is forgotten, since the server does not have it any more"
	for i, tool := range []struct{ name, why, digest string }{{"edit_note", accepted, pin.Digest([]byte(editIs))}, {"old", forgotten, ""}, {"search", accepted, pin.Digest([]byte(search))}} {
		parts := []string{`"principal":"user:`, `"server":"book","method":"pin","kind":"tool","name":"` + tool.name + `","decision":"allow","reason":"` + tool.why + `"`}
		if tool.digest != "" {
			parts = append(parts, `"digest":"`+tool.digest+`"`)
		}
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d is\n%s\nwant %s in it", i+1, lines[i], part)
			}
		}
		if strings.Contains(lines[i], `"digest"`) != (tool.digest != "") {
			t.Errorf("line %d is\n%s\nwant the digest %q", i+1, lines[i], tool.digest)
		}
	}
}

// Where the log is required and out of reach, nothing is accepted; where it is not required, that
// it is out of reach is told.
func TestAuditOfPinsOutOfReach(t *testing.T) {
	away := filepath.Join(t.TempDir(), "no", "audit")
	for _, tt := range []struct {
		name     string
		log      config.Audit
		accepted bool // it is, all the same
		told     bool
	}{
		{"required", config.Audit{File: away, Required: true}, false, true},
		{"not required", config.Audit{File: away}, true, true},
		{"off", config.Audit{File: "off", Required: true}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPinned(t)
			p.log = tt.log
			_, err := p.pin(t, true, false)
			if (err != nil) != tt.told || tt.told && (!errors.Is(err, os.ErrNotExist) || !strings.HasSuffix(err.Error(), "; run this as the user that mcpbridge runs as") ||
				strings.HasPrefix(err.Error(), "nothing was accepted, since the audit log is required: ") == tt.accepted) {
				t.Errorf("Pin = %v", err)
			}
			p.log = config.Audit{}
			if out, err := p.pin(t, false, false); (err == nil) != tt.accepted {
				t.Errorf("Pin after that = %v, and prints\n%s\nwant it accepted: %v", err, out, tt.accepted)
			}
		})
	}
}
