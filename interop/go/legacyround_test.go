package interop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestLegacyRound takes each legacy client through the round on servers that
// speak 2026-07-28 alone, with mcpbridge and a tap in between: what the clients
// see is what legacy servers gave them in TestLegacyDirect, and no message is one
// that the session's revision has not.
func TestLegacyRound(t *testing.T) {
	base := startModern(t)
	legacyRounds(t, "../bin/legacy.txt", []legacySpot{
		{name: "modern-go", base: base, paths: paths{"http": "/mcp/modern-go"}},
		{name: "modern-typescript", base: base, paths: paths{"http": "/mcp/modern-typescript"}},
	})
}

// startModern starts a modern server that has pages and refuses a subscription,
// and an mcpbridge before it and the other modern server. It returns the URL of
// mcpbridge.
func startModern(t *testing.T) (base string) {
	t.Helper()
	dir := t.TempDir()
	server, listen, admin := freeAddr(t), freeAddr(t), freeAddr(t)
	refuse, config := filepath.Join(dir, "refuse"), filepath.Join(dir, "mcpbridge.yaml")
	text := fmt.Sprintf("listen: %s\nadmin: %s\nservers:\n  modern-go: {url: %q}\n  modern-typescript: {url: %q}\n",
		listen, admin, "http://"+server+"/mcp", w.urls["modern-typescript"])
	if err := errors.Join(os.WriteFile(refuse, []byte("res://item/059\n"), 0o600), os.WriteFile(config, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	run(t, "http://"+server+"/mcp", 0, nil, modernGo, "-http", server, "-page", "7", "-refuse", refuse)
	run(t, "http://"+admin+"/readyz", 200, nil, bridgeBinary, "serve", "-c", config)
	return "http://" + listen
}
