package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// pythonClients are the clients on the Python SDKs, by the names they have in
// remotes. That on 2.x finds out the era by itself unless it is told one.
var pythonClients = map[string]*Client{
	"python-1":        {Revision: "2025-11-25"},
	"python-2":        {Revision: revision},
	"python-2-legacy": {Revision: "2025-11-25"},
}

func init() {
	for name, argv := range map[string][]string{
		"python-1":        {"../bin/python-1/bin/python", "../python/client1.py"},
		"python-2":        {"../bin/python-2/bin/python", "../python/client2.py"},
		"python-2-legacy": {"../bin/python-2/bin/python", "../python/client2.py", "legacy"},
	} {
		remotes[name] = argv
	}
}

// pythonRows follow those of matrix.json; what servers of other makes have nothing
// for is left out.
var pythonRows = []string{"elicitation", "elicitation declined", "several rounds", "sampling", "roots", "unsubscribed"}

// A pythonTable has what proves a feature of a server to clients of an era.
type pythonTable struct{ own, modern, legacy *Matrix }

func loadPython(t *testing.T) *pythonTable {
	t.Helper()
	p := new(pythonTable)
	for file, m := range map[string]**Matrix{"python": &p.own, "matrix": &p.modern, "legacy": &p.legacy} {
		var err error
		if *m, err = readMatrix("../" + file + ".json"); err != nil {
			t.Fatal(err)
		}
		(*m).inherit()
	}
	return p
}

// steps returns the steps of a cell for a client of the revision.
func (p *pythonTable) steps(t *testing.T, server, feature, client, rev string) []Step {
	t.Helper()
	tables := []*Matrix{p.own, p.legacy, p.modern}
	if rev == revision {
		tables = []*Matrix{p.own, p.modern, p.legacy}
	}
	for _, m := range tables {
		s := m.Servers[server]
		if s == nil || len(s.Cells[feature]) == 0 {
			continue
		}
		steps, err := s.steps(feature, client, "")
		if err != nil {
			t.Fatal(err)
		}
		steps = slices.DeleteFunc(steps, func(s Step) bool { return !s.fits(rev) })
		for i := range steps {
			steps[i].optIn(t, rev)
		}
		return steps
	}
	return nil
}

// optIn puts the log level of a call where clients of 2026-07-28 have it.
func (s *Step) optIn(t *testing.T, rev string) {
	if s.Log == "" || rev != revision {
		return
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(s.Params, &params); err != nil {
		t.Fatal(err)
	}
	params["_meta"] = fmt.Appendf(nil, `{"io.modelcontextprotocol/logLevel": %q}`, s.Log)
	s.Params, _ = json.Marshal(params) // they were JSON
}

// startPython starts servers on both Python SDKs and one mcpbridge before them and
// the servers of other makes. It returns the URL of mcpbridge, and where servers
// are found without it.
func startPython(t *testing.T) (bridge string, direct map[string]string) {
	t.Helper()
	listen, admin, modern := freeAddr(t), freeAddr(t), freeAddr(t)
	dir := t.TempDir()
	refuse, config := filepath.Join(dir, "refuse"), filepath.Join(dir, "mcpbridge.yaml")
	if err := os.WriteFile(refuse, []byte("res://item/059\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	direct = map[string]string{"everything-go": w.urls["everything-go"], "modern-go": "http://" + modern + "/mcp"}
	run(t, direct["modern-go"], 0, nil, modernGo, "-http", modern, "-page", "7", "-refuse", refuse)
	for _, name := range []string{"python-1", "python-2"} {
		addr := freeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		direct[name] = "http://" + addr + "/mcp"
		run(t, direct[name], 0, nil, "../bin/"+name+"/bin/python", "../python/server"+name[len("python-"):]+".py", "--transport", "http", "--port", port)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "listen: %s\nadmin: %s\nservers:\n", listen, admin)
	for name, url := range direct {
		fmt.Fprintf(&text, "  %s: {url: %q}\n", name, url)
	}
	for client := range pythonClients {
		fmt.Fprintf(&text, "  notebook-%s: {builtin: notebook}\n", client)
	}
	if err := os.WriteFile(config, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "http://"+admin+"/readyz", 200, nil, bridgeBinary, "serve", "-c", config)
	return "http://" + listen + "/mcp/", direct
}

// TestPython takes the clients on the Python SDKs through one mcpbridge to a legacy
// notebook, a legacy server and one that speaks 2026-07-28 alone, and to the last two
// through an mcpbridge on their own pipes; and clients on both generations of go-sdk
// to servers on the Python SDKs. The SDK 1.x percent-encodes what is not ASCII in a
// URI, so that only modern clients read the note grün.
func TestPython(t *testing.T) {
	p := loadPython(t)
	bridge, direct := startPython(t)
	argv, err := absolute(bridgeBinary)
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range slices.Sorted(maps.Keys(pythonClients)) {
		t.Run(client, func(t *testing.T) {
			for _, server := range []string{"notebook-" + client, "everything-go", "modern-go"} {
				t.Run(server, func(t *testing.T) {
					p.round(t, client, server, remote.Target{Transport: "http", URL: bridge + server})
				})
			}
			if client == "python-2-legacy" {
				return // a pipe makes no difference to what differs from the others
			}
			for _, server := range []string{"everything-go", "modern-go"} {
				t.Run("wrapped "+server, func(t *testing.T) {
					p.round(t, client, server, remote.Target{Transport: "stdio", Argv: process.WithCache(append(argv, "wrap", direct[server])...)})
				})
			}
		})
	}
	for _, server := range []string{"python-1", "python-2"} {
		t.Run("server "+server, func(t *testing.T) {
			t.Run("go-1.6.1", func(t *testing.T) { p.roundOf161(t, server, bridge+server) })
			t.Run("go-1.8.0", func(t *testing.T) { p.roundOf180(t, server, bridge+server) })
		})
	}
}

// round takes a Python client through what a server has.
func (p *pythonTable) round(t *testing.T, client, server string, to remote.Target) {
	to.Capabilities = json.RawMessage(`{"elicitation": {}, "sampling": {}, "roots": {"listChanged": true}}`)
	to.Roots = fmt.Appendf(nil, `{"roots": [{"uri": "file:///%s", "name": "root of %[1]s"}]}`, client)
	r := &legacyRound{remoteClient: startRemote(t, client, to), client: pythonClients[client]}
	n := 0
	for _, f := range append(slices.Clone(p.modern.Features), pythonRows...) {
		steps := p.steps(t, strings.TrimSuffix(server, "-"+client), f, client, r.client.Revision)
		if len(steps) == 0 {
			continue
		}
		n++
		t.Run(f, func(t *testing.T) {
			if err := r.cell(t.Context(), steps); err != nil {
				t.Error(err)
			}
		})
	}
	if n < 15 {
		t.Errorf("the round had %d rows, want more", n)
	}
}

// roundOf161 takes go-sdk v1.6.1's client through all that a Python server has.
func (p *pythonTable) roundOf161(t *testing.T, server, url string) {
	to := remote.Target{Transport: "http", URL: url, Capabilities: json.RawMessage(`{"elicitation": {}}`)}
	r := &legacyRound{remoteClient: startRemote(t, "go-1.6.1", to), client: &Client{Revision: "2025-11-25"}}
	for _, f := range p.own.Features {
		t.Run(f, func(t *testing.T) {
			steps := p.steps(t, server, f, "go-1.6.1", r.client.Revision)
			if err := r.cell(t.Context(), steps); err != nil || len(steps) == 0 {
				t.Errorf("%d steps: %v", len(steps), err)
			}
		})
	}
}

// roundOf180 does so with go-sdk v1.8.0's, which is asked in a session of its own.
func (p *pythonTable) roundOf180(t *testing.T, server, url string) {
	c, err := newGoClient(t.Context(), &mcp.StreamableClientTransport{Endpoint: url})
	if err != nil {
		t.Fatal(err)
	}
	defer c.cs.Close()
	if got := c.cs.InitializeResult().ProtocolVersion; got != revision {
		t.Errorf("the client negotiated %s, want %s", got, revision)
	}
	for _, f := range slices.DeleteFunc(slices.Clone(p.own.Features), func(f string) bool { return f == "elicitation" }) {
		t.Run(f, func(t *testing.T) {
			steps := p.steps(t, server, f, "go-1.8.0", revision)
			if problem := c.cell(t.Context(), steps); problem != "" || len(steps) == 0 {
				t.Errorf("%d steps: %v", len(steps), problem)
			}
		})
	}
	t.Run("elicitation", func(t *testing.T) {
		calls := []errandCall{{
			Tool: "ask", Arguments: map[string]any{"question": "Which colour?"},
			Answers: answer("elicitation/create", `{"action": "accept", "content": {"answer": "blue"}}`), want: []string{"accept: blue"},
			asked: `[{"Method": "elicitation/create", "Params": {"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {"answer": {"type": "string"}}}}}]`,
		}}
		compare(t, calls, goErrand(t, errand{URL: url, Revision: revision, Calls: calls}))
	})
}
