package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
)

// check --connect says of each server whether it is there.
func TestCheckConnect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(oneNotebook)
	if got := runCommand(t.Context(), nil, "check", file, "--connect"); got.code != 0 || !strings.Contains(got.out, "SERVER  STATE  REASON\na       ready") {
		t.Errorf("check --connect = %+v", got)
	}
	write(oneNotebook + "  b: {url: 'http://127.0.0.1:1/mcp'}\n")
	got := runCommand(t.Context(), nil, "check", file, "--connect")
	if got.code != exitFailure || !strings.Contains(got.out, "b       down") || !strings.Contains(got.err, "1 of 2 servers can't be used") {
		t.Errorf("check --connect of a server that is not there = %+v", got)
	}
}

// Of a server that may serve each client in its own era, check --connect says which side serves
// whom.
func TestU06CheckConnectNamesTheSides(t *testing.T) {
	both := serve(t, nil, "-c", configFile(t, oneNotebook)).Endpoints[0].URL
	one := (&backtest.OddServer{Status: 500, Kind: "text/html", Body: "<h1>oops</h1>", Greets: true}).Start(t)
	file := configFile(t, fmt.Sprintf("servers:\n  both: {url: %q, era: client}\n  one: {url: %q, era: client}\n", both, one))
	got := runCommand(t.Context(), nil, "check", file, "--connect")
	for _, want := range []string{
		`both +ready +.*; it speaks both eras, and serves each client in its own\n`,
		`one +ready +.*; its legacy side serves all clients, since it has no modern one\n`,
	} {
		if got.code != 0 || !regexp.MustCompile(want).MatchString(got.out) {
			t.Errorf("check --connect = %d, %s%s, want %s in it", got.code, got.out, got.err, want)
		}
	}
}
