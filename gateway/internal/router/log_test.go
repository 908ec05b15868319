package router

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A log is a file, a pipe or a terminal, and any of them can be slow: a client has
// its result before the line about it is written.
func TestResultDoesNotWaitForTheLog(t *testing.T) {
	t.Parallel()
	lines := &slowLog{answered: make(chan struct{})}
	r := newRig(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(lines, nil)) })
	got := r.call(t, "1", "tools/call", "add", `"name":"add","arguments":{}`)
	close(lines.answered)
	if got.status != 200 || !strings.Contains(got.body, `"result"`) {
		t.Errorf("answer = %d %s", got.status, got.body)
	}
	r.Close() // the handlers have returned
	if text := lines.String(); lines.late || !strings.Contains(text, "msg=request") || !strings.Contains(text, "outcome=ok") {
		t.Errorf("log = %q, given up waiting for the answer: %v; want a line for the request after it", text, lines.late)
	}
}

// A slowLog holds the lines about requests until the answer is there.
type slowLog struct {
	bridgetest.Log
	answered chan struct{}
	late     bool
}

func (s *slowLog) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "msg=request") {
		select {
		case <-s.answered:
		case <-time.After(patience):
			s.late = true
		}
	}
	return s.Log.Write(p)
}
