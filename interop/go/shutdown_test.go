package interop

import (
	"bufio"
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

// TestM2L38ShutdownEndsStreams ends an mcpbridge of its own while a client
// listens through it on servers behind both transports: the client must see
// each stream end as the specification wants it, and no child may be left.
func TestM2L38ShutdownEndsStreams(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	t.Cleanup(cancel) // after the clients have been waited for
	b, err := startBridge(ctx, t.TempDir(), w.urls)
	if err != nil {
		t.Fatal(err)
	}
	streams := map[string]*bufio.Scanner{
		"everything-go":    listen(t, ctx, b.endpoint("everything-go"), "test://static-text"),
		"everything-stdio": listen(t, ctx, b.endpoint("everything-stdio"), "demo://resource/static/document/features.md"),
	}
	for server, lines := range streams {
		if got := next(lines); got == "" || got[0] != '{' {
			t.Errorf("the stream on %s was not acknowledged: %q", server, got)
		}
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	for server, lines := range streams {
		if got := next(lines); got != "graceful" {
			t.Errorf("the stream on %s ended %q, want graceful", server, got)
		}
	}
}

// listen runs the TypeScript client's listen stream in a process of its own
// and returns the lines it prints.
func listen(t *testing.T, ctx context.Context, url, uri string) *bufio.Scanner {
	t.Helper()
	cmd := exec.CommandContext(ctx, nodeBinary, listenNode, url, revision, uri)
	var log process.Tail
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Wait(); err != nil {
			t.Errorf("the client on %s ended with %v; it wrote:\n%s", url, err, log.String())
		}
	})
	return bufio.NewScanner(out)
}

func next(lines *bufio.Scanner) string {
	lines.Scan()
	return lines.Text()
}
