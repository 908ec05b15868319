package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

// TestRustLogsIn takes a client on the Rust SDK to a server behind mcpbridge, as
// TestClientsLogIn does the others.
func TestRustLogsIn(t *testing.T) {
	takeTurn(t)
	if _, err := os.Stat(peer("bin/login-rmcp")); errors.Is(err, fs.ErrNotExist) {
		t.Skip("there was no cargo to build it")
	}
	as, b := newIssuer(t), newBrowser(t)
	url := protected(t, as).endpoint("modern")
	for way, document := range map[string]string{"registers": "", "has a document": as.docs.id("rust")} {
		t.Run(way, func(t *testing.T) {
			told := map[string]string{"url": url, "tool": "test_simple_text", "browser": b.as("alice"), "redirect": redirect}
			if document != "" {
				told["document"] = document
			}
			in, err := json.Marshal(told)
			if err != nil {
				t.Fatal(err)
			}
			before := len(as.events(t, "authorization.success", ""))
			cmd := exec.CommandContext(t.Context(), peer("bin/login-rmcp"))
			var log process.Tail
			cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &log
			out, err := cmd.Output()
			if err != nil || string(out) != "a simple text\n" {
				t.Fatalf("the client printed %q and ended with %v; it wrote:\n%s", out, err, log.String())
			}
			got := as.events(t, "authorization.success", "")[before:]
			if len(got) != 1 || got[0].Resource != url || got[0].CodeChallengeMethod != "S256" || !slices.Contains(strings.Fields(got[0].Scope), "mcp:use") || (got[0].Client == document) != (document != "") {
				t.Errorf("the client was authorized with %+v", got)
			}
		})
	}
}
