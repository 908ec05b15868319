//go:build linux

package hostile

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// endlessSize is how much is sent of each message that has no end.
	endlessSize = 3 << 20
	// mostBeyond is how much memory beyond limits.memory the process may have.
	mostBeyond = 64 << 20
)

// WebSockets on which messages never end would have the process hold all that was sent
// (CWE-770). How long calls take meanwhile is in the log.
func TestBoundedUnfinishedMessages(t *testing.T) {
	for _, tt := range []struct {
		limit           int64 // MiB
		addresses, each int
	}{{256, 20, 52}, {64, 1, 260}} {
		t.Run(fmt.Sprintf("%d MiB, %d addresses", tt.limit, tt.addresses), func(t *testing.T) {
			b := startBridgeWithin(t, "legacy", tt.limit)
			quiet := b.serveGuests(t, 5*time.Second)
			before, _ := b.memory(t)
			held, refused := b.openEndless(t, tt.addresses, tt.each)
			busy := b.serveGuests(t, 5*time.Second)
			now, most := b.memory(t)
			t.Logf("%d WebSockets of %d addresses with %d MiB of a message each, limits.memory %d MiB: %d held, %d refused; memory %d MiB before, %d MiB now, %d MiB at most; p99 of a call: %v before, %v now (%.1f times)",
				tt.addresses*tt.each, tt.addresses, endlessSize>>20, tt.limit, len(held), refused, before>>20, now>>20, most>>20, p99(quiet), p99(busy), float64(p99(busy))/float64(p99(quiet)))
			if most > tt.limit<<20+mostBeyond {
				t.Errorf("%d MiB of memory, want at most %d beyond %d", most>>20, mostBeyond>>20, tt.limit)
			}
			if refused == 0 || b.refused(t, "memory") < float64(refused) || len(held) == 0 {
				t.Errorf("%d held, %d refused, %v counted, want some of both, and all counted", len(held), refused, b.refused(t, "memory"))
			}
			for _, ws := range held {
				_ = ws.Close()
			}
			b.serveGuests(t, time.Second)
		})
	}
}

// openEndless opens WebSockets from each of some addresses, and sends on each a message that
// has no end. It returns those that are still open, and how many were closed since there is
// no memory.
func (b *bridge) openEndless(t *testing.T, addresses, each int) (held []*websocket.Conn, refused int) {
	t.Helper()
	var mu sync.Mutex // guards held and refused
	var all sync.WaitGroup
	for a := range addresses {
		d := websocket.Dialer{NetDialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(a+1))}}).DialContext, WriteBufferSize: 64 << 10, Subprotocols: []string{"mcp"}}
		all.Go(func() {
			for range each {
				ws, _, err := d.DialContext(t.Context(), "ws://"+b.addr+"/mcp/s", nil)
				if err != nil {
					mu.Lock()
					refused++ // its own memory is more than there is
					mu.Unlock()
					continue
				}
				open := sendEndless(t, ws)
				mu.Lock()
				if open {
					held = append(held, ws)
				} else {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Cleanup(func() {
		for _, ws := range held {
			_ = ws.Close()
		}
	})
	return held, refused
}

// sendEndless sends what it may of a message that has no end, and reports whether the
// WebSocket is still open then.
func sendEndless(t *testing.T, ws *websocket.Conn) (open bool) {
	closed := make(chan error, 1)
	go func() { // ends with the connection
		_, _, err := ws.ReadMessage()
		closed <- err
	}()
	w, err := ws.NextWriter(websocket.TextMessage)
	for size := 0; err == nil && size < endlessSize && len(closed) == 0; size += 32 << 10 {
		_, err = w.Write(make([]byte, 32<<10))
	}
	select {
	case err := <-closed:
		if !websocket.IsCloseError(err, websocket.CloseTryAgainLater) {
			t.Logf("closed because of %v", err)
		}
		_ = ws.Close()
		return false
	case <-time.After(20 * time.Millisecond): // the bytes have left
		return true
	}
}
