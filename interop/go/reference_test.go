package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestReference proves what the document says, with its programs as they stand
// there and mcpbridge between them.
func TestReference(t *testing.T) {
	d := readDocument(t)
	s := startStand(t, d)
	t.Run("client", func(t *testing.T) { s.testClient(t, d) })
	t.Run("frames", func(t *testing.T) { s.testFrames(t, d) })
	t.Run("search", s.testSearch)
	t.Run("watcher", func(t *testing.T) { s.testWatcher(t, d) })
}

// editor is a client that changes notes.
func editor(t *testing.T, url string) *goClient {
	t.Helper()
	c, err := newGoClient(t.Context(), &mcp.StreamableClientTransport{Endpoint: url})
	if err != nil {
		t.Fatalf("connecting to %s: %v", url, err)
	}
	t.Cleanup(func() { c.cs.Close() })
	return c
}

func (c *goClient) edit(t *testing.T, text string) {
	t.Helper()
	params := fmt.Appendf(nil, `{"name": "edit_note", "arguments": {"name": "todo", "text": %q}}`, text)
	s := &Step{Op: "call", Params: params, Want: map[string]any{"content": []any{map[string]any{"type": "text", "text": "saved"}}}}
	if err := c.do(t.Context(), s); err != nil {
		t.Fatalf("editing the note: %v", err)
	}
}

// testClient runs the document's client, with the line changed that says
// where the server is, at its own server without anything between, then at its
// servers and at a server of the legacy era behind mcpbridge. It says that the note
// changed, and nothing before it did.
func (s *stand) testClient(t *testing.T, d *document) {
	for _, tt := range []struct{ name, url string }{
		{"directly", "http://" + s.addr + "/mcp"},
		{"document", s.bridge + "document"},
		{"low-level", s.bridge + "low-level"},
		{"stdio", s.bridge + "stdio"},
		{"notebook", s.bridge + "notebook"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			editor := editor(t, tt.url)
			text := strings.Replace(d.client, location, fmt.Sprintf("mcp = %q\n", tt.url), 1)
			cmd := s.program(t.Context(), t, text, "import anyio, client; print(anyio.run(client.watch_todo))")
			var out, log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }() // ends with the process, below
			err := editUntil(t, editor, ended)
			if err != nil || out.String() != "changed: note://todo\n" {
				t.Errorf("the client printed %q and ended with %v, want %q; it wrote:\n%s", &out, err, "changed: note://todo\n", &log)
			}
		})
	}
}

// editUntil changes the note now and then: it is the client's own affair when it
// listens.
func editUntil(t *testing.T, c *goClient, ended <-chan error) error {
	for range 240 { // at most: Python takes its time to start on a busy machine
		select {
		case err := <-ended:
			return err
		case <-time.After(500 * time.Millisecond):
			c.edit(t, "buy bread")
		}
	}
	return errors.New("it heard of no change")
}

// testFrames holds that a listen stream that mcpbridge gives of the
// document's server has the frames that the document shows.
func (s *stand) testFrames(t *testing.T, d *document) {
	for _, name := range []string{"document", "notebook"} {
		t.Run(name, func(t *testing.T) {
			frames := listenFrames(t, s.bridge+name, `"resourceSubscriptions": ["note://todo"]`)
			if got := <-frames; !reflect.DeepEqual(got, d.frames[0]) {
				t.Errorf("the first frame is %v, want %v", got, d.frames[0])
			}
			editor(t, s.bridge+name).edit(t, "buy bread")
			if got := <-frames; !reflect.DeepEqual(got, d.frames[1]) {
				t.Errorf("the frame after the edit is %v, want %v", got, d.frames[1])
			}
		})
	}
}

// listenFrames opens a listen stream with the id 7, and returns its frames. It
// lasts as long as the test, at most answerTime.
func listenFrames(t *testing.T, url, filter string) <-chan any {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {"notifications": {%s}, "_meta": {
		"io.modelcontextprotocol/protocolVersion": %q, "io.modelcontextprotocol/clientCapabilities": {},
		"io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"}}}}`, filter, revision)
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {revision}, "Mcp-Method": {"subscriptions/listen"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("listening: %s", res.Status)
	}
	frames := make(chan any, 16) // more than any test waits for
	go readFrames(res, frames)   // ends with ctx
	return frames
}

func readFrames(res *http.Response, frames chan<- any) {
	defer close(frames)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var v any
		if ok && json.Unmarshal([]byte(data), &v) == nil {
			frames <- v
		}
	}
}

// testSearch does what the document says of its other tool: who listens
// for the tools hears of the one that enable_search adds, and calls it.
func (s *stand) testSearch(t *testing.T) {
	c := editor(t, s.bridge+"document")
	for _, step := range []string{
		`{"op": "list", "of": "tools", "names": ["edit_note", "enable_search"]}`,
		`{"op": "watch", "of": "tools", "trigger": {"op": "call", "params": {"name": "enable_search", "arguments": {}},
			"want": {"content": [{"type": "text", "text": "search is live"}]}}}`,
		`{"op": "list", "of": "tools", "names": ["edit_note", "enable_search", "search"]}`,
		`{"op": "call", "params": {"name": "search", "arguments": {"query": "day one"}}, "want": {"structuredContent": {"result": ["journal"]}}}`,
	} {
		var st Step
		if err := json.Unmarshal([]byte(step), &st); err != nil {
			t.Fatal(err)
		}
		if err := c.do(t.Context(), &st); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
}

// printing surrounds the document's watcher with what it takes for granted, and
// prints what it reads. What it reads first, it reads once it listens.
const printing = `import sys
import anyio
import mcp
from mcp.client.subscriptions import SubscriptionLost

class Client(mcp.Client):
    async def read_resource(self, uri):
        result = await super().read_resource(uri)
        print(result.contents[0].text, flush=True)
        return result

%s
async def main():
    async with Client(sys.argv[1]) as client:
        await watch(client, "note://todo")
`

// testWatcher runs the document's watcher: through mcpbridge it reads the
// note anew after each change, also when the server has been away, which forgets
// what was changed.
func (s *stand) testWatcher(t *testing.T, d *document) {
	c := editor(t, s.bridge+"document")
	c.edit(t, "buy eggs")
	cmd := s.program(t.Context(), t, fmt.Sprintf(printing, d.watcher), "import anyio, client; anyio.run(client.main)", s.bridge+"document")
	var log bytes.Buffer
	cmd.Stderr = &log
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	want := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("the watcher did not print %q; it wrote:\n%s", want, &log)
	}
	stuck := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer func() {
		stuck.Stop()
		cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	want("buy eggs")
	c.edit(t, "buy bread")
	want("buy bread")
	s.server.Kill() // it does not end by itself while somebody listens
	s.serve(t)
	want("buy milk")
}
