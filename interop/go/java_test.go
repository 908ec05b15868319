package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
)

const (
	javaClasses   = "../bin/java/classes:../bin/java/lib/*"
	javaRecording = "testdata/java-sdk-2.1.0.jsonl"
)

var recordJava = flag.Bool("record", false, "rewrite what the Java SDK sends, in testdata")

// A javaCall is a tool that asks its user to fill in a form, and what comes of it.
type javaCall struct {
	name, base, path string // of the endpoint
	tool, arguments  string
	content          string // what the user fills in
	asked, want      any
}

// A javaTold is what the client was told and asked.
type javaTold struct {
	ProtocolVersion string `json:"protocolVersion"`
	Result          any    `json:"result"`
	Asked           any    `json:"asked"`
}

// TestL2M13JavaOverHTTPSSE has Java's SDK answer a form over HTTP+SSE: it speaks
// 2024-11-05 there, and declares elicitation all the same. The servers are of both
// eras, the older one's session the client's own or shared. Where there is no JDK
// the requests that the SDK once sent stand for it; they are played in any case.
func TestL2M13JavaOverHTTPSSE(t *testing.T) {
	shared := startBridgeOn(t, fmt.Sprintf("  shared: {url: %q, isolation: shared}\n", w.urls["everything-go"]))
	own := "http://" + w.bridge.listen
	elicited := func(text string) any {
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	}
	const tell = `{"message":"who?"}`
	legacyForm := []any{map[string]any{"message": "who?", "requestedSchema": map[string]any{"required": []any{"username"}}}}
	for _, c := range []javaCall{
		{"legacy, linked", own, "/sse/everything-go", "test_elicitation", tell, `{"username":"ada"}`, legacyForm,
			elicited("Elicitation result: action=accept, content=map[username:ada]")},
		{"legacy, shared", shared, "/sse/shared", "test_elicitation", tell, `{"username":"ada"}`, legacyForm,
			elicited("Elicitation result: action=accept, content=map[username:ada]")},
		{"modern", own, "/sse/modern-go", "test_input_required_result_elicitation", `{}`, `{"name":"Ada"}`,
			[]any{map[string]any{"message": "What is your name?", "requestedSchema": map[string]any{"properties": map[string]any{"name": map[string]any{"type": "string"}}}}},
			elicited("Hello, Ada!")},
	} {
		t.Run(c.name+", recorded", func(t *testing.T) { c.check(t, playJava) })
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat("../bin/java/classes"); errors.Is(err, os.ErrNotExist) {
				t.Skip("interop/build found no JDK: the recorded requests alone are proof here")
			}
			c.check(t, runJava)
		})
	}
}

func (c *javaCall) check(t *testing.T, run func(context.Context, *testing.T, *javaCall) (javaTold, error)) {
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	got, err := run(ctx, t, c)
	if err != nil {
		t.Fatal(err)
	}
	if got.ProtocolVersion != "2024-11-05" {
		t.Errorf("the client negotiated %s, want 2024-11-05", got.ProtocolVersion)
	}
	for what, pair := range map[string][2]any{"the result": {c.want, got.Result}, "what was asked": {c.asked, got.Asked}} {
		if problem := match.Mismatch("", pair[0], pair[1]); problem != "" {
			t.Errorf("%s: %s", what, problem)
		}
	}
}

// runJava has the SDK make the call, and compares what it sends with the recording.
func runJava(ctx context.Context, t *testing.T, c *javaCall) (told javaTold, err error) {
	target, err := url.Parse(c.base)
	if err != nil {
		return told, err
	}
	sent := &posts{next: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}}
	between := httptest.NewServer(sent)
	defer between.Close()
	cmd := exec.CommandContext(ctx, "java", "-cp", javaClasses, "Client", between.URL, c.path, c.tool, c.arguments, c.content)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return told, fmt.Errorf("java: %w: %s", err, log.Bytes())
	}
	if c.name == "modern" {
		sent.compare(t)
	}
	return told, json.Unmarshal(out, &told)
}

// posts keeps the bodies that are posted through it.
type posts struct {
	next http.Handler

	mu     sync.Mutex
	bodies []string
}

func (p *posts) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.mu.Lock()
		p.bodies = append(p.bodies, string(body))
		p.mu.Unlock()
	}
	p.next.ServeHTTP(rw, r)
}

// compare wants what was posted to be what was recorded, ids aside, which the SDK
// makes up.
func (p *posts) compare(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if *recordJava {
		if err := os.WriteFile(javaRecording, []byte(strings.Join(p.bodies, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := javaMessages()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.bodies) != len(recorded) {
		t.Fatalf("the SDK sent %q, want %d messages, by %s (-record rewrites it)", p.bodies, len(recorded), javaRecording)
	}
	for i, body := range p.bodies {
		var got map[string]any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "id")
		delete(recorded[i], "id")
		if problem := match.Mismatch("", recorded[i], got); problem != "" {
			t.Errorf("message %d of the SDK is not as recorded (-record rewrites that): %s", i+1, problem)
		}
	}
}

// javaMessages returns what the SDK sent: initialize, initialized, a call and the
// answer to its question.
func javaMessages() (all []map[string]any, err error) {
	text, err := os.ReadFile(javaRecording)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
