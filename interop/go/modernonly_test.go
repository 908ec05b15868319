package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestModernOnly proves that the servers of 2026-07-28 refuse a legacy client, so
// that whatever such a client has from them, it has through mcpbridge.
func TestModernOnly(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n"
	for name, argv := range map[string][]string{"modern-go": {modernGo}, "modern-typescript": {nodeBinary, modernNode}} {
		t.Run(name+" http", func(t *testing.T) { wantRefusal(t, post(t, w.urls[name], initialize)) })
		t.Run(name+" stdio", func(t *testing.T) { wantRefusal(t, firstLine(t, argv, initialize)) })
	}
}

func wantRefusal(t *testing.T, answer []byte) {
	t.Helper()
	var got struct {
		ID    int
		Error struct {
			Code int
			Data struct{ Supported []string }
		}
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	if got.ID != 7 || got.Error.Code != -32022 || strings.Join(got.Error.Data.Supported, " ") != revision {
		t.Errorf("initialize = %s, want -32022 with %s as the only revision", answer, revision)
	}
}

// post sends a message that must be refused with 400, and returns the answer.
func post(t *testing.T, url, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusBadRequest {
		t.Fatalf("POST = %s %s, %v, want 400", res.Status, answer, err)
	}
	return answer
}

// firstLine starts a server, writes one line to it and returns the first it
// writes.
func firstLine(t *testing.T, argv []string, line string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, line); err != nil {
		t.Error(err)
	}
	answer, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Error(err)
	}
	_ = in.Close() // Wait says whether the server ended for it
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s ended with %v, want 0 when its input ends", argv, err)
	}
	return answer
}
