package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A pipe, a device or a large file in the place of a file of the configuration would hold
// up whoever reads it, or take all memory. What is named on the command line may be a pipe.
func TestConfigurationIsOfFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := errors.Join(os.WriteFile(large, []byte("servers: {}\n"), 0o600), os.Truncate(large, 100<<20)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"include: [" + fifo + "]\n":                       "is no regular file",
		"include: [/dev/zero]\n":                          "is no regular file",
		"include: [" + large + "]\n":                      "is larger than",
		"admin_token: ${file:" + fifo + "}\n":             "is no regular file",
		"servers: {a: {command: x, env_file: fifo}}\n":    "is no regular file",
		"servers: {a: {command: x, env_file: /dev}}\n":    "is a folder",
		"admin_token: ${file:/dev/zero}\n":                "is no regular file",
		"tls: {cert: " + fifo + ", key: " + fifo + "}\n":  "not a regular file",
		"servers: {a: {url: 'http://127.0.0.1:1/mcp'}}\n": "",
	} {
		path := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := runCommand(t.Context(), nil, "check", path) // a pipe or /dev/zero that is read would keep it
		if (got.code == 0) != (want == "") || !strings.Contains(got.err, want) {
			t.Errorf("check of %q = %d %q, want %q", text, got.code, got.err, want)
		}
	}
	for path, want := range map[string]string{"/dev/zero": "is no regular file", large: "is larger than 32MiB, which is all that is read of a file; divide it into several, and name them with include: [conf.d/*.yaml]"} {
		if got := runCommand(t.Context(), nil, "check", path); got.code != exitUsage && got.code != exitFailure || !strings.Contains(got.err, want) {
			t.Errorf("check %s = %d %q, want %q", path, got.code, got.err, want)
		}
	}
	go func() { // ends when check has read it
		_ = os.WriteFile(fifo, []byte("servers: {a: {url: 'http://127.0.0.1:1/mcp'}}\n"), 0o600)
	}()
	if got := runCommand(t.Context(), nil, "check", fifo); got.code != 0 {
		t.Errorf("check of a pipe = %d %q", got.code, got.err)
	}
}

// A reload that reads what does not answer would keep serve from ending.
func TestShutdownWaitsForNoReload(t *testing.T) {
	dir := t.TempDir()
	fifo, path := filepath.Join(dir, "fifo"), filepath.Join(dir, "c.yaml")
	text := "admin_token: ''\nservers: {notebook: {builtin: notebook}}\n"
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil, path, "--watch=false")
	if err := errors.Join(os.Remove(path), os.Symlink(fifo, path)); err != nil { // a pipe is one that the command line may name
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { // ends with serve
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Admin+"/reload", nil)
		if err == nil {
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				err = resp.Body.Close()
			}
		}
		asked <- err
	}()
	bridgetest.Eventually(t, "a reload that reads", func() bool {
		f, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0) // there is a reader
		if err == nil {
			t.Cleanup(func() { _ = f.Close() }) // which ends the reader
		}
		return err == nil
	})
	begin := time.Now()
	if code := s.stop(); code != 0 || time.Since(begin) > 3*time.Second {
		t.Errorf("serve ended with %d after %v: %s", code, time.Since(begin), s.log)
	}
	cancel()
	<-asked // however it ended
}
