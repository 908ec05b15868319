package auth

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A client is one of an SDK.
type client struct {
	name     string
	argv     func() []string
	revision string // that it settles on with mcpbridge
}

var clients = []client{
	{"typescript-1.32.2", func() []string { return node("node/remote.mjs", "sdk-1.32.2") }, "2025-11-25"},
	{"typescript-2.4.0", func() []string { return node("node/remote-2.mjs") }, "2026-07-28"},
	{"python-2", func() []string { return []string{peer("bin/python-2/bin/python"), peer("python/client2.py")} }, "2026-07-28"},
	{"go-1.8.0", func() []string { return []string{peer("bin/client-go180")} }, "2026-07-28"},
}

// begin starts a client.
func (c *client) begin(t *testing.T) *steer.Client {
	t.Helper()
	s, err := steer.Start(c.argv()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.End(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", c.name, s.Log())
		}
	})
	return s
}

// request asks and decodes what came.
func request(t *testing.T, s *steer.Client, method string, params, into any) {
	t.Helper()
	if err := try(t.Context(), s, method, params, into); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

func try(ctx context.Context, s *steer.Client, method string, params, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	got, err := s.Request(ctx, method, params)
	if err != nil || into == nil {
		return err
	}
	text, err := json.Marshal(got)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// to is a target that the client logs in to.
func to(url string, l *remote.Login) *remote.Target {
	return &remote.Target{Transport: "http", URL: url, Capabilities: json.RawMessage("{}"), Login: l}
}
