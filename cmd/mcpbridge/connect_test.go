package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
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

// check --connect asks the replicas whether they accept the configuration. Those of real engines
// are in interop/engines.
func TestCheckConnectReplicas(t *testing.T) {
	addr := bridgetest.FreeAddr(t)
	const key = "VbY7q+Ws0ZtR2gKd8fq2mz0x"
	of := func(by, key string) string {
		return configFile(t, fmt.Sprintf("replicas: {%s, keys: [%s], advertise: '%s'}\n%s", by, key, addr, oneNotebook))
	}
	peers := "peers: 'dns://" + addr + "'"
	serve(t, nil, "-c", of(peers, key))
	anyInstance := regexp.MustCompile(`[A-Z2-7]{8}  127`)
	for _, tt := range []struct {
		name, file string
		code       int
		out, err   string
	}{
		{"good", of(peers, key), 0, "\nREPLICAS BY            STATE  REASON\ndns://" + addr + "  ready  \n\nREPLICA   ADDRESS          VERSION  ACCEPTS  REASON\nINSTANCE  " + addr + "  ", ""},
		{"other keys", of(peers, "n"+key), exitFailure, "  -        no       keys: it does not have the first of replicas.keys, which signs; compare them\n", "mcpbridge: 1 of 1 living replicas and this configuration do not go together: requests for sessions of the other would fail\n"},
		{"nobody yet", of("peers: 'dns://127.0.0.1:1'", key), 0, "dns://127.0.0.1:1  ready  \n", ""},
		{"an engine that is not there", of("engine: 'redis://:s3cret@127.0.0.1:1'", key), exitFailure, "redis://127.0.0.1:1  down   it can't be reached: asking Redis: dial tcp 127.0.0.1:1: connect: connection refused\n", "mcpbridge: the replicas can't be asked for: a process with this configuration would serve by itself\n"},
	} {
		got := runCommand(t.Context(), nil, "check", tt.file, "--connect")
		out := anyInstance.ReplaceAllString(got.out, "INSTANCE  127")
		if warned := "mcpbridge: warning:"; got.code != tt.code || !strings.Contains(out, tt.out) || !strings.HasSuffix(got.err, tt.err) || tt.err == "" && !strings.HasPrefix(got.err, warned) && got.err != "" {
			t.Errorf("%s: check --connect = %d, %s\n%s\nwant %d, %s\n%s", tt.name, got.code, out, got.err, tt.code, tt.out, tt.err)
		}
	}
	got := runCommand(t.Context(), nil, "check", of(peers, "n"+key), "--connect", "--json")
	var told struct {
		Connect struct {
			Servers []struct {
				Name  string
				Ready bool
			}
			Replicas struct {
				By     string
				Living []struct {
					Addr    string
					Accepts bool
					Differs []struct{ What, Text string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(got.out), &told); err != nil {
		t.Fatalf("check --connect --json = %+v: %v", got, err)
	}
	c := told.Connect
	if got.code != exitFailure || len(c.Servers) != 1 || !c.Servers[0].Ready || c.Replicas.By != "dns://"+addr || len(c.Replicas.Living) != 1 {
		t.Fatalf("check --connect --json = %+v", got)
	}
	if r := c.Replicas.Living[0]; r.Addr != addr || r.Accepts || len(r.Differs) != 1 || r.Differs[0].What != "keys" {
		t.Errorf("with other keys it says %+v", r)
	}
}
