package reload

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A server goes on with the TLS that is in use, whatever was read since and is not.
func TestCarriedTLS(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	_, _, ca := bridgetest.NewAuthority(t, "a").Files(dir, bridgetest.Leaf{})
	as := func(name string) *config.Server {
		return &config.Server{Name: "a", TLS: config.ServerTLS{CA: ca, ServerName: name}}
	}
	inUse := &Carried{}
	first := inUse.ClientTLS(as("one.example"), log)
	refused := inUse.Next().ClientTLS(as("two.example"), log)
	if refused == first {
		t.Error("another name has the same TLS")
	}
	next := inUse.Next()
	if next.ClientTLS(as("one.example"), log) != first {
		t.Error("after another reading that is not in use, the same server has another TLS")
	}
	if next.Next().ClientTLS(as("one.example"), log) != first {
		t.Error("what was in use before is not carried on")
	}
	bridgetest.NewAuthority(t, "a").Files(dir, bridgetest.Leaf{})
	if next.Next().ClientTLS(as("one.example"), log) == first {
		t.Error("with another authority in the file, it is the same TLS")
	}
}

// A reading that was given up may go on beside the next one.
func TestCarriedIsReadTwice(t *testing.T) {
	inUse := &Carried{}
	s := &config.Server{Name: "a", TLS: config.ServerTLS{ServerName: "one.example"}}
	first := inUse.ClientTLS(s, slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	for range 2 {
		next := inUse.Next()
		wg.Go(func() {
			if next.ClientTLS(s, slog.New(slog.DiscardHandler)) != first {
				t.Error("the same server has another TLS")
			}
		})
	}
	wg.Wait()
}
