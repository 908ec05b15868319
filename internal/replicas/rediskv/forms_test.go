package rediskv

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Replicas of all versions use the same keys.
func TestForms(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	at, err := replicas.ParseURL("redis://nobody.example")
	if err != nil {
		t.Fatal(err)
	}
	s := Open(Options{URL: at, Prefix: "mcpbridge", Logger: slog.New(slog.DiscardHandler),
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("there is nobody") }})
	defer func() {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	forms.Want("kept", s.keptKey("89ab"))
	forms.Want("keys", strings.Join([]string{s.key("members"), s.key("ends"), s.claimKey("0123"), s.recordKey("4567"), s.channel()}, " "))
}
