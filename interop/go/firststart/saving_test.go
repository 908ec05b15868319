package firststart

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// serveSaver is the program of a legacy server that saves something when its input ends, and
// does not when it gets SIGTERM: its arguments are how long that takes, a file that it makes
// at its end, and one that it makes at its start.
func serveSaver(takes, end, start string) error {
	d, err := time.ParseDuration(takes)
	if err == nil {
		err = os.WriteFile(start, nil, 0o600)
	}
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion string }
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return err
		}
		answer := `"error":{"code":-32601,"message":"method not found"}`
		switch {
		case m.ID == nil:
			continue
		case m.Method == "initialize":
			answer = fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"saver","version":"0"}}`, m.Params.ProtocolVersion)
		case m.Method == "tools/list":
			answer = `"result":{"tools":[]}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
	}
	time.Sleep(d)
	return os.WriteFile(end, nil, 0o600)
}

// Clients close a command's input, send SIGTERM 2 s later (Go's after 5 s), and SIGKILL after
// as much again. A server that saves for almost as long as they leave it has saved, directly
// and under wrap.
func TestU04WhatIsSavedAtTheEndIsSaved(t *testing.T) {
	for _, k := range []*sdk{typescript1, python1, python2, go161} {
		for _, way := range []string{"directly", "wrap"} {
			t.Run(k.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				c := start(t, k, k.argv, "")
				for _, takes := range []string{"800ms", "1500ms", "1900ms"} {
					saved := false
					for n := 0; n < 3 && !saved; n++ { // a busy machine may take what is left of the time
						saved = savesAtItsEnd(t, c, way, takes)
					}
					if !saved {
						t.Errorf("what the server saves for %s was lost", takes)
					}
				}
			})
		}
	}
}

// savesAtItsEnd has a client use such a server and close it, and reports whether the server
// has saved.
func savesAtItsEnd(t *testing.T, c *client, way, takes string) bool {
	dir := t.TempDir()
	started, ended := filepath.Join(dir, "started"), filepath.Join(dir, "ended")
	to := remote.Target{Transport: "stdio", Argv: []string{os.Args[0], "saver", takes, ended, started}}
	if way == "wrap" {
		to.Argv = append([]string{words["{bridge}"], "wrap", "--"}, to.Argv...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := c.open(ctx, to)
	if err == nil {
		_, err = c.Request(ctx, "tools/list", nil)
	}
	if err == nil {
		err = c.close(ctx)
	}
	if err != nil {
		t.Fatalf("%v; the client wrote:\n%s", err, c.Log())
	}
	rig.Until(t, time.Minute, "the server's start", func() string {
		if _, err := os.Stat(started); err != nil {
			return err.Error()
		}
		return ""
	})
	_, err = os.Stat(ended)
	return err == nil
}
