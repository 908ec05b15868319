package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// Clients of both eras call a tool of the server, and the program ends in order.
func TestEmbedded(t *testing.T) {
	p := program.Start(t)
	if got := p.Modern("today", nil); got.Status != http.StatusOK || got.Text != "buy milk" {
		t.Errorf("call of 2026-07-28 = %d %s, want 200 buy milk", got.Status, got.Body)
	}
	session := p.Open(nil)
	if got := p.Legacy(session, "today", nil); got.Status != http.StatusOK || got.Text != "buy milk" {
		t.Errorf("call of 2025-11-25 = %d %s, want 200 buy milk", got.Status, got.Body)
	}
	if got := p.Legacy(session, "tomorrow", nil); got.Text != "there is no such note" {
		t.Errorf("call of 2025-11-25 for another note = %d %s, want that there is none", got.Status, got.Body)
	}
	if log := p.Interrupt(); !strings.Contains(log, "read_note") {
		t.Errorf("the log does not have the calls of read_note:\n%s", log)
	}
}
