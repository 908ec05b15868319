package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// A ran is what became of one command.
type ran struct {
	out, err string
	code     int
}

// runCommand runs the program in this process, to its end.
func runCommand(ctx context.Context, environ []string, args ...string) ran {
	var out, errs buffer
	p := process{args: append([]string{"mcpbridge"}, args...), environ: environ, stdout: &out, stderr: &errs}
	code := exitCode(p.run(ctx), &errs)
	return ran{out.String(), errs.String(), code}
}

// A buffer may be read while a command still writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A running is serve, in this process, until stop.
type running struct {
	announcement
	log  *buffer
	stop func() int
}

// serve starts serve with args on free ports and waits for what it prints.
func serve(t *testing.T, environ []string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	log := new(buffer)
	args = append([]string{"mcpbridge", "serve", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)
	p := process{args: args, environ: environ, stdout: w, stderr: log}
	ended := make(chan int, 1)
	go func() {
		ended <- exitCode(p.run(ctx), log)
		_ = w.Close()
	}()
	s := &running{log: log}
	err := json.NewDecoder(r).Decode(&s.announcement)
	code, waited := 0, false
	s.stop = func() int {
		if cancel(); !waited {
			code, waited = <-ended, true
		}
		return code
	}
	t.Cleanup(func() { s.stop() })
	if err != nil {
		t.Fatalf("serve printed no endpoints: %v; it logged %s", err, log)
	}
	return s
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// patience bounds the wait for what must come: a busy machine may take seconds.
const patience = 30 * time.Second

// eventually waits for what other goroutines are about to do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v: still not %s", patience, what)
		}
	}
}

// A child is a process of this test.
type child struct {
	cmd      *exec.Cmd
	out, err *buffer
}

func start(t *testing.T, bin string, args ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(bin, args...), out: &buffer{}, err: &buffer{}}
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.err
	if err := c.cmd.Start(); err != nil {
		t.Fatal(fmt.Errorf("starting %s: %w", bin, err))
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // errors if it has ended, as it should have
		_ = c.cmd.Wait()
	})
	return c
}
