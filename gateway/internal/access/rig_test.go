package access

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A fixed Handler returns always the same result.
type fixed struct{ body []byte }

func (f fixed) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return mcp.NewResult(f.body, nil), nil
}

// readers lets everybody read what is open, and asks for a scope for what is written.
func readers() *policy.Policy {
	return policy.New(false, []policy.Rule{
		{Deny: true, Tools: []string{"*secret*"}, Resources: []string{"file:///open/secret*"}},
		{Tools: []string{"read_*"}, Prompts: []string{"read_*"}, Resources: []string{"file:///open/*"}},
		{Scopes: []string{"files:write"}, Tools: []string{"write_*"}},
	})
}

// requestOf returns a request of Ada's.
func requestOf(method, params string) *mcp.Request {
	req := &mcp.Request{
		Method: method, Params: []byte(params), Era: spec.Modern, Principal: "ada",
		Identity: &mcp.Identity{Principal: "ada"}, ClientInfo: []byte(`{"name":"ide","version":"1.2"}`),
	}
	req.Share.Principal = req.Principal
	return req
}

// limits counts what was refused because of a limit.
type limits struct {
	mcp.NoMetrics
	hit []string
}

func (l *limits) Limit(server, name string) { l.hit = append(l.hit, server+" "+name) }

// An auditFile is an audit log that can be read.
type auditFile struct {
	*audit.Log
	path string
}

func newAudit(t *testing.T) *auditFile {
	a := &auditFile{path: filepath.Join(t.TempDir(), "audit")}
	var err error
	if a.Log, err = audit.Open(audit.Options{Path: a.path}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() }) // it may have been closed
	return a
}

// lines closes the log, and returns its lines without what is the same in all of them.
func (a *auditFile) lines(t *testing.T) (all []string) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(a.path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l struct {
			Principal, Server, Client, Era, Method, Kind, Name, Decision, Outcome, Reason string
			Rule                                                                          int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if l.Principal != "ada" || l.Server != "files" || l.Client != "ide/1.2" || l.Era == "" || (l.Reason == "") != (l.Decision == "allow") {
			t.Errorf("the line is %s", line)
		}
		all = append(all, fmt.Sprintf("%s %s:%s %s %d %s", l.Method, l.Kind, l.Name, l.Decision, l.Rule, l.Outcome))
	}
	return all
}

// pinned returns pins that have accepted the tools of a list.
func pinned(t *testing.T, tools string) *pin.Pins {
	t.Helper()
	p, err := pin.Open(pin.Options{Store: pin.Folder(t.TempDir()), Server: "files", Refuse: true})
	if err != nil {
		t.Fatal(err)
	}
	p.Check(slices.Collect(wire.Elements([]byte(tools))), true)
	return p
}
