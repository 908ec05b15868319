package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// startChild starts one of the children, and closes it when the test ends.
func startChild(t *testing.T, child string, opts CommandOptions) *Command {
	t.Helper()
	opts.Argv = []string{os.Args[0]}
	opts.Name = child
	// By default a race build takes a second to exit, and a coverage build writes to
	// standard error.
	env := map[string]string{childVar: child, "GORACE": "atexit_sleep_ms=0", "GOCOVERDIR": t.TempDir()}
	for name, value := range opts.Env {
		env[name] = value
	}
	opts.Env = env
	c, err := StartCommand(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say starts a child that writes text to its standard output and ends.
func say(t *testing.T, text string, opts CommandOptions) *Command {
	opts.Env = map[string]string{"SAY": text}
	return startChild(t, "say", opts)
}

func mustRead(t *testing.T, c Conn) string {
	t.Helper()
	msg, err := c.Read()
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return string(msg)
}

// patience bounds the wait for other processes: a busy machine may take seconds.
const patience = 30 * time.Second

func waitDone(t *testing.T, c *Command) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatalf("the child is not gone after %v", patience)
	}
}

func TestCommandEcho(t *testing.T) {
	c := startChild(t, "echo", CommandOptions{})
	for i := range 3 {
		want := fmt.Sprintf(`{"id":%d}`, i)
		if err := c.Write([]byte(want)); err != nil {
			t.Fatal(err)
		}
		if got := mustRead(t, c); got != want {
			t.Errorf("echo = %s, want %s", got, want)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close of a child that heeds the end of its input = %v", err)
	}
	if err := c.Err(); err != nil {
		t.Errorf("Err after status 0 = %v, want nil", err)
	}
	if _, err := c.Read(); err != ErrClosed {
		t.Errorf("Read after Close = %v, want ErrClosed", err)
	}
	if err := c.Write([]byte("{}")); err != ErrClosed {
		t.Errorf("Write after Close = %v, want ErrClosed", err)
	}
}

func TestU04WritesExactlyOneLine(t *testing.T) {
	c := startChild(t, "length", CommandOptions{})
	for _, tt := range []struct{ name, in, line string }{
		{"as it is", `{"a":"\n"}`, `{"a":"\n"}` + "\n"},
		{"surrounding space", " {}\r\n ", "{}\n"},
		{"structural line breaks", "{\r\n\t\"a\":1\n}", "{  \t\"a\":1 }\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte(tt.in)
			if err := c.Write(in); err != nil {
				t.Fatal(err)
			}
			var got struct {
				Length int
				Start  string
			}
			if err := json.Unmarshal([]byte(mustRead(t, c)), &got); err != nil {
				t.Fatal(err)
			}
			if got.Start != tt.line || got.Length != len(tt.line) {
				t.Errorf("Write(%q) sent %q, want %q", tt.in, got.Start, tt.line)
			}
			if string(in) != tt.in {
				t.Errorf("Write changed its argument to %q", in)
			}
		})
	}
	for _, in := range []string{"", " ", "true", "hello"} {
		if err := c.Write([]byte(in)); err == nil {
			t.Errorf("Write(%q) = nil, want an error", in)
		}
	}
}

func TestCommandLongMessages(t *testing.T) {
	c := startChild(t, "echo", CommandOptions{})
	var wg sync.WaitGroup
	sizes := []int{1, gatherMessage - 3, gatherMessage, 1 << 20, 5 << 20, 10}
	wg.Go(func() {
		for _, n := range sizes {
			if err := c.Write([]byte(`["` + strings.Repeat("x", n) + `"]`)); err != nil {
				t.Error(err)
			}
		}
	})
	var kept []string
	for range sizes {
		msg, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, string(msg))
	}
	wg.Wait()
	for i, n := range sizes {
		if want := `["` + strings.Repeat("x", n) + `"]`; kept[i] != want {
			t.Errorf("message %d came back with %d bytes, want %d", i, len(kept[i]), len(want))
		}
	}
}

func TestCommandConcurrentWrites(t *testing.T) {
	c := startChild(t, "echo", CommandOptions{})
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			pad := strings.Repeat("x", w*10_000)
			for i := range each {
				if err := c.Write(fmt.Appendf(nil, `{"w":%d,"i":%d,"pad":%q}`, w, i, pad)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := make([]int, writers)
	for range writers * each {
		var m struct{ W, I int }
		if err := json.Unmarshal([]byte(mustRead(t, c)), &m); err != nil {
			t.Fatalf("messages mixed: %v", err)
		}
		if m.I != next[m.W] {
			t.Errorf("writer %d: message %d, want %d", m.W, m.I, next[m.W])
		}
		next[m.W]++
	}
	wg.Wait()
}

func TestU04SkipsNoise(t *testing.T) {
	for _, tt := range []struct {
		name, out string
		want      []string
		noise     int64 // lines
	}{
		{"banner", "Server running on stdio\n{\"id\":1}\n", []string{`{"id":1}`}, 1},
		{"between messages", "{\"id\":1}\nlog: {x}\n\n  \n{\"id\":2}\n", []string{`{"id":1}`, `{"id":2}`}, 1},
		{"CRLF", "{\"id\":1}\r\n{\"id\":2}\r\n", []string{`{"id":1}`, `{"id":2}`}, 0},
		{"indented", " \t{\"id\":1} \n", []string{`{"id":1}`}, 0},
		{"batch", "[{\"id\":1}]\n", []string{`[{"id":1}]`}, 0},
		{"no line end", "{\"id\":1}\n{\"id\":2}", []string{`{"id":1}`, `{"id":2}`}, 0},
		{"cut short", "{\"id\":1}\n{\"id\":", []string{`{"id":1}`}, 1},
		{"other JSON", "\"x\"\n1\ntrue\n{\"id\":1}\n", []string{`{"id":1}`}, 3},
		{"no server", "hello\n", nil, 0},
		{"nothing", "", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			met := quirks.New(quirks.Options{})
			c := say(t, tt.out, CommandOptions{Quirks: met})
			for _, want := range tt.want {
				if got := mustRead(t, c); got != want {
					t.Errorf("Read = %s, want %s", got, want)
				}
			}
			if msg, err := c.Read(); err != io.EOF {
				t.Errorf("last Read = %q, %v, want EOF", msg, err)
			}
			var lines int64
			for _, m := range met.Meetings() {
				lines += m.Count
			}
			if lines != tt.noise {
				t.Errorf("%d lines of noise are counted, want %d", lines, tt.noise)
			}
		})
	}
}

func TestU04LogsNoise(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	c := say(t, "banner "+strings.Repeat("x", 10_000)+"\n", CommandOptions{Logger: log})
	if _, err := c.Read(); err != io.EOF {
		t.Fatal(err)
	}
	c.Close()
	if got := out.String(); !strings.Contains(got, "banner") || !strings.Contains(got, "upstream=say") || len(got) > 1000 {
		t.Errorf("log = %q, want a short line with the noise and the server's name", got)
	}
}

func TestCommandTooLong(t *testing.T) {
	const limit = 100_000
	for _, size := range []int{limit + 1, 3 * limit, 50 * limit} {
		c := startChild(t, "echo", CommandOptions{MaxMessage: limit})
		var wg sync.WaitGroup
		wg.Go(func() {
			c.Write([]byte(`{"id":7,"pad":"` + strings.Repeat("x", size-17) + `"}`))
			c.Write([]byte(`{"id":8}`))
		})
		_, err := c.Read()
		var tooLong *TooLongError
		if !errors.As(err, &tooLong) || tooLong.Limit != limit || !bytes.HasPrefix(tooLong.Start, []byte(`{"id":7,`)) {
			t.Fatalf("Read of %d bytes = %v, want a TooLongError with the message's start", size, err)
		}
		if got := mustRead(t, c); got != `{"id":8}` {
			t.Errorf("message after one of %d bytes = %s, want id 8", size, got)
		}
		if got, want := cap(c.lines.buf), cap(GetBuffer(limit)); got > want {
			t.Errorf("buffer = %d bytes, want at most %d for the limit", got, want)
		}
		wg.Wait()
	}
}

func TestU04MinimalEnvironment(t *testing.T) {
	c := startChild(t, "env", CommandOptions{
		Environ: []string{"PATH=/bin", "HOME=/home/ada", "USER=() { evil; }", "AWS_SECRET_ACCESS_KEY=s3cret", "TERM=xterm"},
		Env:     map[string]string{"NODE_ENV": "production", "TERM": "dumb"},
	})
	var got []string
	if err := json.Unmarshal([]byte(mustRead(t, c)), &got); err != nil {
		t.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(entry string) bool { return strings.HasPrefix(entry, "GO") || entry == c.mark }) // startChild's, and the mark
	slices.Sort(got)
	want := []string{"HOME=/home/ada", "NODE_ENV=production", "PATH=/bin", "TERM=dumb", childVar + "=env"}
	if !slices.Equal(got, want) {
		t.Errorf("environment = %q, want %q", got, want)
	}
}

func TestU04DrainsStderrToLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	long := strings.Repeat("e", 300_000) // more than a pipe holds
	c := startChild(t, "crash", CommandOptions{Logger: log, Env: map[string]string{
		"SAY": "one\r\n\n" + long[:100_000] + "\nlast without end",
	}})
	waitDone(t, c)
	for _, want := range []string{`"upstream":"crash"`, `"line":"one"`, `"line":"last without end"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("log lacks %s", want)
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > stderrLine+500 {
			t.Errorf("a log line of %d bytes, want it cut", len(line))
		}
	}
}

// A child that is started to be probed may end before the probe begins: whoever probes it
// says so, and the log does not say it first.
func TestU04QuietFromItsStart(t *testing.T) {
	var out bytes.Buffer
	c := startChild(t, "crash", CommandOptions{
		Logger: slog.New(slog.NewTextHandler(&out, nil)), Quiet: true, Env: map[string]string{"SAY": "no key\n"},
	})
	waitDone(t, c)
	if out.Len() > 0 {
		t.Errorf("log = %s, want none above debug", out.String())
	}
}

// A Write to a child that is ending returns how it ended, not the broken pipe.
func TestCommandCrashMeetsAWrite(t *testing.T) {
	var err error
	for range 5 { // on a busy machine a child may take longer to end than exitGrace
		c := startChild(t, "faint", CommandOptions{})
		if _, err := c.Read(); err != nil {
			t.Fatal(err)
		}
		var exit *ExitError
		if err = c.Write([]byte("{}")); errors.As(err, &exit) && slices.Equal(exit.Stderr, []string{"API_KEY is not set"}) {
			return
		}
	}
	t.Errorf("Write = %v, want the child's status and last lines", err)
}

func TestCommandCrash(t *testing.T) {
	c := startChild(t, "crash", CommandOptions{Env: map[string]string{
		"SAY": "1\n2\n3\n4\n5\n6\n" + strings.Repeat("x", 3000) + "\n",
	}})
	if _, err := c.Read(); err != io.EOF {
		t.Errorf("Read from a crashed child = %v, want EOF", err)
	}
	waitDone(t, c)
	var exit *ExitError
	if err := c.Err(); !errors.As(err, &exit) {
		t.Fatalf("Err = %v, want an ExitError", err)
	}
	if exit.Status != "exit status 3" || exit.Name != "crash" {
		t.Errorf("ExitError = %+v, want status 3 of crash", exit)
	}
	want := []string{"3", "4", "5", "6", strings.Repeat("x", keptWord) + "…"}
	if !slices.Equal(exit.Stderr, want) {
		t.Errorf("last lines = %.80q, want %.80q", exit.Stderr, want)
	}
	if !strings.Contains(exit.Error(), "exit status 3") {
		t.Errorf("Error() = %q, want it to name the status", exit.Error())
	}
	if err := c.Write([]byte("{}")); !errors.As(err, &exit) {
		t.Errorf("Write to a crashed child = %v, want an ExitError", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close of a crashed child = %v, want nil", err)
	}
}

// Messages fill the pipe exactly: the next one is withdrawn whole.
func TestCommandUnwritten(t *testing.T) {
	c := startChild(t, "deaf", CommandOptions{CloseGrace: time.Millisecond})
	mustRead(t, c)
	msg := []byte(`{"pad":"` + strings.Repeat("x", 4096-11) + `"}`)
	patient := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return c.WriteUntil(ctx, msg)
	}
	var err error
	for range 1000 {
		if err = patient(); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrUnwritten) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("WriteUntil to a full pipe = %v, want ErrUnwritten", err)
	}
	if wake.Closed(c.Done()) || c.out.broken != nil {
		t.Error("a message of which nothing was written broke the connection")
	}
}

func TestCommandCloseUnblocks(t *testing.T) {
	c := startChild(t, "echo", CommandOptions{})
	errs := make(chan error, 1)
	go func() { // ends when Close unblocks Read
		_, err := c.Read()
		errs <- err
	}()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := c.Close(); err != nil {
				t.Errorf("Close = %v, want nil", err)
			}
		})
	}
	wg.Wait()
	if err := <-errs; err != ErrClosed {
		t.Errorf("Read during Close = %v, want ErrClosed", err)
	}
}

func TestCommandCloseUnblocksWrite(t *testing.T) {
	c := startChild(t, "deaf", CommandOptions{CloseGrace: 50 * time.Millisecond})
	mustRead(t, c)
	errs := make(chan error, 2)
	for range cap(errs) { // end when Close unblocks Write
		go func() { errs <- c.Write([]byte("[" + strings.Repeat(" ", 1<<20) + "]")) }()
	}
	for len(c.out.turn) == 0 {
		time.Sleep(time.Millisecond) // until one of them holds the token
	}
	c.Close()
	for range cap(errs) {
		if err := <-errs; err != ErrClosed {
			t.Errorf("Write during Close = %v, want ErrClosed", err)
		}
	}
}

// A child that is blocked in a write notices the end of its input only when its output is
// read.
func TestCommandCloseReadsOutput(t *testing.T) {
	c := startChild(t, "flood", CommandOptions{CloseGrace: 10 * time.Second})
	mustRead(t, c)
	if err := c.Close(); err != nil {
		t.Errorf("Close of a child that is writing = %v, want nil", err)
	}
}

// Whoever wants to know is told of each line on standard error, cut like those of the log.
func TestU04TellsOfStderr(t *testing.T) {
	var lines []string // written by one goroutine, which has ended once the child has
	c := startChild(t, "crash", CommandOptions{
		Quiet: true, Env: map[string]string{"SAY": "one\r\n\n" + strings.Repeat("e", 100_000) + "\nlast without end"},
		Wrote: func(line string) { lines = append(lines, line) },
	})
	waitDone(t, c)
	if len(lines) < 3 || lines[0] != "one" || len(lines[1]) > stderrLine+len("…") || !slices.Contains(lines, "last without end") {
		t.Errorf("told of %d lines, the first %.20q", len(lines), lines)
	}
}
