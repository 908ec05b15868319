package router

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// A kennel is a legacy server over connections, each served by a notebook of its own,
// as a command is that is started for each session.
type kennel struct {
	mu     sync.Mutex // guards conns
	conns  map[transport.Conn]bool
	served atomic.Int64
}

func (k *kennel) dial(context.Context) (transport.Conn, error) {
	ours, theirs := transport.NewPipe()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conns[theirs] = true
	k.served.Add(1)
	go func() { // ends with the connection
		_ = notebook.New(notebook.Options{}).Serve(context.Background(), theirs)
		_ = theirs.Close()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.conns, theirs)
	}()
	return ours, nil
}

// kill ends some server's process.
func (k *kennel) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.conns {
		_ = c.Close()
		return
	}
}

func (k *kennel) open() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.conns)
}

// Clients come and go, politely and not, and servers die under them: every call gets an
// answer, of the right client, or a 404, and at the end neither side holds a session.
func TestS02Churn(t *testing.T) {
	t.Parallel()
	k := &kennel{conns: make(map[transport.Conn]bool)}
	r := newRig(t, func(o *Options) {
		o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", Changes: c, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}, Dial: k.dial, MaxSessions: 1000})
		}
	})
	var clients, deaths sync.WaitGroup
	stop := make(chan struct{})
	deaths.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				k.kill()
				r.call(t, "1", "tools/list", "", "") // a modern client beside them keeps the pace
			}
		}
	})
	var answered, gone atomic.Int64
	for n := range 16 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			for round := 0; round < 12 || gone.Load() == 0 && round < 1000; round++ {
				churn(t, r, rng, fmt.Sprintf("%d-%d", n, round), &answered, &gone)
			}
		})
	}
	clients.Wait()
	close(stop)
	deaths.Wait()
	t.Logf("%d calls answered, %d sessions found gone, %d servers started", answered.Load(), gone.Load(), k.served.Load())
	if answered.Load() == 0 || gone.Load() == 0 {
		t.Error("want some calls answered, and some sessions gone")
	}
	r.eventually(t, "no session is left but the one that modern clients share", func() bool {
		return r.g.Snapshot().Sessions == 0 && k.open() <= 2
	})
}

// isGone reports whether a session is gone: by a 404, or, on a stream that is open, by an error that says so.
func (a answer) isGone() bool {
	return a.status == http.StatusNotFound || a.status == http.StatusOK && strings.Contains(a.body, "the session upstream has ended")
}

// churn is the life of one client.
func churn(t *testing.T, r *rig, rng *rand.Rand, name string, answered, gone *atomic.Int64) {
	res := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"`+name+`","version":"1"}}}`, legacyHeaders(""))
	session := res.header.Get("Mcp-Session-Id")
	if session == "" {
		if res.code() == 0 {
			t.Errorf("%s: initialize = %d %s, want a session or an error", name, res.status, res.body)
		}
		return
	}
	h := legacyHeaders(session)
	r.send(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h)
	var stream *http.Response
	if rng.IntN(2) == 0 {
		stream = r.open(t, http.MethodGet, "", h)
		defer stream.Body.Close()
	}
	for i := range 1 + rng.IntN(4) {
		text := fmt.Sprintf("%s says %d", name, i)
		got := r.send(t, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"edit_note","arguments":{"name":"todo","text":%q}}}`, i+1, text), h)
		switch {
		case got.isGone():
			gone.Add(1)
			return
		case got.code() != 0:
			t.Errorf("%s: call = %d %s, want an answer or 404", name, got.status, got.body)
			return
		}
		got = r.send(t, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"note://todo"}}`, i+100), h)
		switch {
		case got.isGone():
			gone.Add(1)
			return
		case !strings.Contains(got.body, text):
			t.Errorf("%s: read = %d %s, want its own %q", name, got.status, got.body, text)
			return
		}
		answered.Add(2)
	}
	if stream != nil && rng.IntN(2) == 0 {
		go func() { _, _ = io.Copy(io.Discard, stream.Body) }() // ends with the session
	}
	if got := r.send(t, http.MethodDelete, "", h); got.status != 204 && got.status != 404 {
		t.Errorf("%s: DELETE = %d %s", name, got.status, got.body)
	}
}
