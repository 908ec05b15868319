package interop

import (
	"context"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// remotes are the clients under remote control, by the names they have in
// legacy.json.
var remotes = map[string][]string{
	"sdk-1.32.2": {nodeBinary, "../node/remote.mjs", "sdk-1.32.2"},
	"sdk-1.12.3": {nodeBinary, "../node/remote.mjs", "sdk-1.12.3"},
	"sdk-1.9.0":  {nodeBinary, "../node/remote.mjs", "sdk-1.9.0"},
	"go-1.6.1":   {"../bin/client-go161"},
	"mcpgo":      {"../bin/client-mcpgo", "-legacy"},
}

// A remoteClient is a client in a process of its own, on one server.
type remoteClient struct {
	*steer.Client
	hello any // the result of initialize
}

// startRemote starts a client and has it initialize a session. It ends with the
// test.
func startRemote(t *testing.T, name string, to remote.Target) *remoteClient {
	t.Helper()
	c, err := steer.Start(remotes[name]...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopRemote(t, c) })
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	hello, err := c.Request(ctx, "initialize", to)
	if err != nil {
		t.Fatalf("initialize: %v; %s wrote:\n%s", err, name, c.Log())
	}
	return &remoteClient{Client: c, hello: hello}
}

// stopRemote ends the session, then the process.
func stopRemote(t *testing.T, c *steer.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := c.Request(ctx, remote.Close, nil); err != nil {
		t.Errorf("closing the session: %v", err)
	}
	if err := c.End(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("the client wrote:\n%s", c.Log())
	}
}
