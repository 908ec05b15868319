package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func TestHealthcheck(t *testing.T) {
	dir, err := os.MkdirTemp("", "admin") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	plain := configFile(t, "servers: {notebook: {builtin: notebook}}\n")
	secure, _ := secured(t, securely+"admin_token: the-admin-token-1\nallow_anonymous: true\n")
	for _, tt := range []struct {
		name, file, admin string
	}{
		{"an address", plain, "127.0.0.1:0"},
		{"all addresses, over TLS, with a token", secure, "0.0.0.0:0"},
		{"a socket", plain, "unix:" + filepath.Join(dir, "s")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, nil, "-c", tt.file, "--admin", tt.admin)
			at := tt.admin
			if _, addr, ok := strings.Cut(s.Admin, "://"); ok {
				at = strings.Replace(addr, "127.0.0.1", strings.TrimSuffix(tt.admin, ":0"), 1)
			}
			if got := runCommand(t.Context(), nil, "healthcheck", tt.file, "--admin", at); got.code != 0 || got.out != "ok\n" {
				t.Errorf("healthcheck = %+v, want ok", got)
			}
			bridgetest.Eventually(t, "ready", func() bool {
				got := runCommand(t.Context(), []string{"MCPBRIDGE_ADMIN=" + at}, "healthcheck", "--ready", "-c", tt.file)
				return got.code == 0 && got.out == "ready\n"
			})
			s.stop()
			if got := runCommand(t.Context(), nil, "healthcheck", tt.file, "--admin", at); got.code != exitFailure || !strings.Contains(got.err, "is it running") {
				t.Errorf("healthcheck of an ended process = %+v, want the code %d", got, exitFailure)
			}
		})
	}
}

// What does not answer is not waited for.
func TestHealthcheckOfTheSilent(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	if got := runCommand(t.Context(), nil, "healthcheck", "--timeout", "50ms", "--admin", silent.Addr().String()); got.code != exitFailure || !strings.Contains(got.err, "--timeout") {
		t.Errorf("healthcheck of what is silent = %+v", got)
	}
}
