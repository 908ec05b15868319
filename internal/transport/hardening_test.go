package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// A child that floods its standard error is read as fast as it writes, and the log stays
// small: once a second it has the number of dropped lines.
func TestHardeningStderrFlood(t *testing.T) {
	const size = 8 << 20
	var out bytes.Buffer
	begun := time.Now()
	c := startChild(t, "noisy", CommandOptions{
		Logger: slog.New(slog.NewJSONHandler(&out, nil)), Env: map[string]string{"SIZE": fmt.Sprint(size), "TO": "stderr"},
	})
	waitDone(t, c)
	checkFlood(t, &out, time.Since(begun), "standard error")
	var exit *ExitError
	if err := c.Err(); !errors.As(err, &exit) || !strings.HasPrefix(exit.Stderr[len(exit.Stderr)-1], "the end") {
		t.Errorf("Err = %v, want the last lines", err)
	}
}

// The same for standard output that is not a message.
func TestHardeningStdoutFlood(t *testing.T) {
	var out bytes.Buffer
	begun := time.Now()
	c := startChild(t, "noisy", CommandOptions{
		Logger: slog.New(slog.NewJSONHandler(&out, nil)), Env: map[string]string{"SIZE": fmt.Sprint(8 << 20), "TO": "stdout"},
	})
	if _, err := c.Read(); err != io.EOF {
		t.Errorf("Read = %v, want EOF", err)
	}
	waitDone(t, c)
	checkFlood(t, &out, time.Since(begun), "standard output")
}

// checkFlood checks a log of a child that has written many lines of 100 bytes.
func checkFlood(t *testing.T, out *bytes.Buffer, took time.Duration, where string) {
	t.Helper()
	periods := int(took/time.Second) + 2
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines > periods*(loggedLines+1)+5 {
		t.Errorf("%d lines in the log after %v, want at most %d a second", lines, took, loggedLines)
	}
	if !strings.Contains(out.String(), `"msg":"server wrote more than is logged","upstream":"noisy","to":"`+where+`","lines":`) {
		t.Errorf("the log does not say that lines were left out: %.2000s", out)
	}
}

// The number of dropped lines is logged at most once a second, and at the end.
func TestHardeningOmittedLinesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &lineLimit{log: slog.New(slog.NewTextHandler(&out, nil)), source: "standard error"}
		for range loggedLines + 7 {
			l.allows(slog.LevelInfo)
		}
		time.Sleep(loggedPeriod)
		synctest.Wait()
		for range loggedLines + 9 {
			l.allows(slog.LevelInfo)
		}
		l.allows(slog.LevelDebug) // which is not logged anyway
		l.end()
		if l.allows(slog.LevelInfo) {
			t.Error("a line is allowed after the end")
		}
		if got := out.String(); !strings.Contains(got, "lines=7 ") || !strings.Contains(got, "lines=9 ") || strings.Count(got, "\n") != 2 {
			t.Errorf("logged %q, want that 7 and 9 lines were left out", got)
		}
	})
}

// A long line is cut once, and the text after it is another line.
func TestHardeningLongLineIsCutOnce(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("ü", 60_000)
	c := startChild(t, "crash", CommandOptions{
		Logger: slog.New(slog.NewTextHandler(&out, nil)), Env: map[string]string{"SAY": "x" + long + "\nnext\n"},
	})
	waitDone(t, c)
	got := out.String()
	if n := strings.Count(got, "server wrote to standard error"); n != 2 {
		t.Errorf("%d lines logged, want 2", n)
	}
	if !strings.Contains(got, "ü…\n") || !strings.Contains(got, "line=next") || len(got) > stderrLine+1000 {
		t.Errorf("logged %d bytes, want one cut between characters, with a mark", len(got))
	}
}

// Errors do not contain known secrets in any form, nor the beginning of a cut secret.
func TestHardeningLastWordsHoldNoSecret(t *testing.T) {
	secrets := redact.New("kn0wn-value")
	c := startChild(t, "crash", CommandOptions{Secrets: secrets, Env: map[string]string{
		"SAY": "kn0wn-value is wrong\n" + strings.Repeat("x", keptWord-8) + "kn0wn-value\n",
	}})
	waitDone(t, c)
	if got := c.Err().Error(); strings.Contains(got, "kn0wn") || !strings.Contains(got, "is wrong") {
		t.Errorf("Err = %s, want it without the secret", got)
	}
	c = say(t, "kn0wn-value is no JSON\n", CommandOptions{Secrets: secrets})
	if _, err := c.Read(); err != io.EOF {
		t.Errorf("Read = %v, want EOF", err)
	}
	if got := Noise(c); strings.Contains(got, "kn0wn") || !strings.Contains(got, "is no JSON") {
		t.Errorf("Noise = %s, want it without the secret", got)
	}
}

// Errors for clients have neither addresses nor paths of this side, nor a child's output.
func TestHardeningPublic(t *testing.T) {
	_, dialed := net.DialTimeout("tcp", "127.0.0.1:1", time.Second)
	_, unknown := (&net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }}).LookupHost(t.Context(), "inner.example")
	_, missing := StartCommand(CommandOptions{Argv: []string{"no-such-program"}, Name: "files"})
	_, absent := StartCommand(CommandOptions{Argv: []string{"/opt/none/server"}, Name: "files"})
	_, elsewhere := StartCommand(CommandOptions{Argv: []string{os.Args[0]}, Dir: "/opt/none", Name: "files"})
	exit := Exited(&ExitError{Name: "files", Status: "exit status 3", Stderr: []string{"words"}})
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"dialling", fmt.Errorf("connecting to it: %w", dialed), "connecting to it: connection refused"},
		{"looking up", unknown, "the name of its host can't be looked up"},
		{"no such program", missing, "starting server files: executable file not found in $PATH"},
		{"no such file", absent, "starting server files: no such file or directory"},
		{"no such directory", elsewhere, "starting server files: no such file or directory"},
		{"last lines", exit, "it ended: exit status 3"},
		{"last lines of a chain", fmt.Errorf("initialize: %w", exit), "initialize: it ended: exit status 3"},
		{"the exit itself", &ExitError{Name: "files", Status: "exit status 3", Stderr: []string{"words"}}, "server files ended: exit status 3"},
		{"flattened", errors.New("read tcp 10.0.0.1:41232->[fe80::1%eth0]:80: connection reset"), "read tcp [hidden]->[hidden]: connection reset"},
		{"a path within", errors.New(`opening "/var/lib/x y": no`), `opening "[hidden] y": no`},
		{"a name and port", errors.New("dialling db.inner:5432 for http://a.inner/x"), "dialling [hidden] for [hidden]"},
		{"nothing to hide", errors.New("it answered tools/call with HTTP 502 Bad Gateway"), "it answered tools/call with HTTP 502 Bad Gateway"},
		{"a proxy", &ProxyError{"proxy.inner:3128", dialed}, "through a proxy: connection refused"},
		{"many", errors.Join(dialed, exit), "connection refused\nit ended: exit status 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Public(tt.err); got != tt.want {
				t.Errorf("Public(%v) = %q, want %q", tt.err, got, tt.want)
			}
		})
	}
}
