package firststart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

const (
	legacyRevision = "2025-11-25"
	modernRevision = "2026-07-28"
)

// An sdk is a published client.
type sdk struct {
	name     string
	argv     []string
	revision string   // what it speaks with mcpbridge
	directly []string // what stands in for it with a legacy server that it refuses, if it does
	// asks is how long it waits for server/discover before it opens a session instead; zero
	// means as long as it takes.
	asks time.Duration
}

// speaks returns the revision that it speaks with mcpbridge in front of a command that
// takes a while to start.
func (k *sdk) speaks(start time.Duration) string {
	if k.asks > 0 && start > k.asks {
		return legacyRevision
	}
	return k.revision
}

func (k *sdk) modern() bool { return k.revision == modernRevision }

// On a pipe, the TypeScript client 2.4.0 starts a command once to ask and once more
// to be served, pinned or not.
var (
	typescript1      = &sdk{name: "sdk-1.32.2", argv: []string{"{node}", "{interop}/node/remote.mjs", "sdk-1.32.2"}, revision: legacyRevision}
	typescript2      = &sdk{name: "typescript-2.4.0", argv: []string{"{node}", "{interop}/node/remote-2.mjs", "auto"}, revision: modernRevision}
	typescriptPinned = &sdk{name: "typescript-2.4.0-pinned", argv: []string{"{node}", "{interop}/node/remote-2.mjs", modernRevision}, revision: modernRevision, directly: typescript2.argv}
	go161            = &sdk{name: "go-1.6.1", argv: []string{"{bin}/client-go161"}, revision: legacyRevision}
	go180            = &sdk{name: "go-1.8.0", argv: []string{"{bin}/client-go180"}, revision: modernRevision}
	python1          = &sdk{name: "python-1", argv: []string{"{bin}/python-1/bin/python", "{interop}/python/client1.py"}, revision: legacyRevision}
	python2          = &sdk{name: "python-2", argv: []string{"{bin}/python-2/bin/python", "{interop}/python/client2.py", "auto", "hasty"}, revision: modernRevision, asks: 10 * time.Second}

	sdks = []*sdk{typescript1, typescript2, typescriptPinned, go161, go180, python1, python2}
)

// A client is an sdk's, running. Sessions are opened and closed one after another.
type client struct {
	*steer.Client
	revision string // what a session must be of; empty means any
}

// start starts a client. It ends with the test.
func start(t *testing.T, k *sdk, argv []string, revision string) *client {
	t.Helper()
	c, err := steer.Start(fillAll(argv)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.End(); err != nil {
			t.Errorf("%s: %v; it wrote:\n%s", k.name, err, c.Log())
		}
	})
	return &client{c, revision}
}

// close ends the session.
func (c *client) close(ctx context.Context) error {
	if _, err := c.Request(ctx, remote.Close, nil); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return nil
}

// visit opens a session, has the server's tools listed and one called, and closes the
// session. took is the time to the answer to the call.
func (c *client) visit(ctx context.Context, to remote.Target, s *server) (took time.Duration, err error) {
	began := time.Now()
	err = c.open(ctx, to)
	if err == nil {
		err = c.use(ctx, s)
	}
	took = time.Since(began)
	if err != nil {
		err = fmt.Errorf("after %.1f s: %w", took.Seconds(), err)
		_ = c.close(ctx) // what went wrong first is of interest
		return took, err
	}
	return took, c.close(ctx)
}

func (c *client) open(ctx context.Context, to remote.Target) error {
	if to.Capabilities == nil {
		to.Capabilities = json.RawMessage("{}")
	}
	got, err := c.Request(ctx, "initialize", to)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	if c.revision == "" {
		return nil
	}
	if why := match.Mismatch("connecting: result", map[string]any{"protocolVersion": c.revision}, got); why != "" {
		return errors.New(why)
	}
	return nil
}

func (c *client) use(ctx context.Context, s *server) error {
	got, err := c.Request(ctx, "tools/list", nil)
	if err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	if err := s.lists(got); err != nil {
		return err
	}
	if got, err = c.Request(ctx, "tools/call", s.call); err != nil {
		return fmt.Errorf("tools/call: %w", err)
	}
	if why := match.Mismatch("tools/call: result", s.want, got); why != "" {
		return errors.New(why)
	}
	return nil
}
