package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A ran is what became of one command.
type ran struct {
	out, err string
	code     int
}

// runCommand runs the program in this process, to its end.
func runCommand(ctx context.Context, environ []string, args ...string) ran {
	var out, errs bridgetest.Log
	p := process{args: append([]string{"mcpbridge"}, args...), environ: environ, stdout: &out, stderr: &errs}
	code := exitCode(p.run(ctx), &errs)
	return ran{out.String(), errs.String(), code}
}

// A running is serve, in this process, until stop.
type running struct {
	report.Announcement
	log  *bridgetest.Log
	stop func() int
}

// serve starts serve with args on free ports and waits for what it prints.
func serve(t *testing.T, environ []string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	log := new(bridgetest.Log)
	args = append([]string{"mcpbridge", "serve", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)
	p := process{args: args, environ: environ, stdout: w, stderr: log}
	ended := make(chan int, 1)
	go func() {
		ended <- exitCode(p.run(ctx), log)
		_ = w.Close()
	}()
	s := &running{log: log}
	err := json.NewDecoder(r).Decode(&s.Announcement)
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

// A child is a process of this test.
type child struct {
	cmd      *exec.Cmd
	out, err *bridgetest.Log
}

func start(t *testing.T, bin string, args ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(bin, args...), out: &bridgetest.Log{}, err: &bridgetest.Log{}}
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
