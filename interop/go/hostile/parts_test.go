//go:build linux

package hostile

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// Each test is one of the ways in which a program without these limits takes a gigabyte.

func TestBoundedAnnouncements(t *testing.T) {
	startBridge(t, "legacy").withstand(t, part{3000, time.Millisecond / 2, func(ctx context.Context, c *client, _ int) {
		if conn, err := c.announce(ctx); err == nil {
			holdConn(ctx, conn)
		}
	}, "memory"})
}

func TestBoundedCapabilities(t *testing.T) {
	invent := func(size int) func(context.Context, *client, int) {
		return func(ctx context.Context, c *client, n int) {
			_, _, _ = c.tool(ctx, "echo", fmt.Sprintf(`{"experimental":{"x%d":{},"y":"%s"}}`, n, text(size)), "")
		}
	}
	startBridge(t, "legacy").withstand(t,
		part{150, 10 * time.Millisecond, invent(3 << 20), "capabilities"},
		part{5000, time.Millisecond, invent(15 << 10), "capabilities"})
}

func TestBoundedClientInfo(t *testing.T) {
	enter := func(size int) func(context.Context, *client, int) {
		return func(ctx context.Context, c *client, _ int) { _, _ = c.initialize(ctx, text(size)) }
	}
	startBridge(t, "legacy").withstand(t,
		part{100, 10 * time.Millisecond, enter(3 << 20), "client_info"},
		part{3000, time.Millisecond, enter(60 << 10), "memory"})
}

func TestBoundedFilters(t *testing.T) {
	open := func(uris, size int) func(context.Context, *client, int) {
		return func(ctx context.Context, c *client, n int) {
			_, _, _, _ = c.send(ctx, modernHeaders("subscriptions/listen", ""), listen("1", resources(n, uris, size)))
		}
	}
	startBridge(t, "legacy").withstand(t,
		part{150, 10 * time.Millisecond, open(1024, 3<<10), "filter"},
		part{1000, time.Millisecond, open(30, 8000), "memory"})
}

// Of a modern server, what clients of the era before follow is kept here.
func TestBoundedSubscriptions(t *testing.T) {
	b := startBridge(t, "modern")
	subscribe := func(size int) func(context.Context, *client, int) {
		return func(ctx context.Context, c *client, n int) {
			session, err := c.initialize(ctx, "")
			for i := 0; i < 100 && err == nil; i++ {
				_, _, _, err = c.send(ctx, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"note://%d/%d/%s"}}`, n, i, text(size)))
			}
		}
	}
	b.withstand(t,
		part{3, time.Millisecond, subscribe(1 << 20), "uri"},
		part{50, time.Millisecond, subscribe(8000), "memory"})
}

func TestBoundedParkedCalls(t *testing.T) {
	startBridge(t, "legacy").withstand(t, part{400, 3 * time.Millisecond, func(ctx context.Context, c *client, _ int) {
		_, _, _ = c.tool(ctx, "ask", `{"elicitation":{"form":{}}}`, megabyte)
	}, "memory"})
}

func TestBoundedHangingCalls(t *testing.T) {
	startBridge(t, "legacy").withstand(t, part{300, 3 * time.Millisecond, func(ctx context.Context, c *client, _ int) {
		_, _, _ = c.tool(ctx, "hang", "{}", megabyte)
	}, "memory"})
}

// initialize opens a session of 2025-11-25, and returns the headers of what is sent in it.
func (c *client) initialize(ctx context.Context, name string) (http.Header, error) {
	_, h, _, err := c.send(ctx, http.Header{}, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c%s","version":"0"}}}`, name))
	return http.Header{"Mcp-Session-Id": {h.Get("Mcp-Session-Id")}, "Mcp-Protocol-Version": {"2025-11-25"}}, err
}
