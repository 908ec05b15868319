package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

var (
	ada = http.Header{"X-Api-Key": {"ada-s3cret"}}
	bob = http.Header{"X-Api-Key": {"bob-s3cret"}}
)

// A request without a key of the program's is refused, whatever its era.
func TestUnknownKeys(t *testing.T) {
	p := program.Start(t)
	for _, tt := range []struct {
		name string
		key  http.Header
	}{
		{"none", nil},
		{"empty", http.Header{"X-Api-Key": {""}}},
		{"another", http.Header{"X-Api-Key": {"eve-s3cret"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for era, got := range map[string]program.Answer{
				"2026-07-28": p.Modern("today", tt.key),
				"2025-11-25": p.Legacy("some-session", "today", tt.key),
			} {
				if got.Status != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") != `ApiKey realm="notes"` {
					t.Errorf("call of %s = %d, challenge %q, want 401 and that of the program", era, got.Status, got.Header.Get("WWW-Authenticate"))
				}
			}
		})
	}
}

// Ada may call the tool and Bob may not; Bob has no use for Ada's session.
func TestPrincipals(t *testing.T) {
	p := program.Start(t)
	if got := p.Modern("today", ada); got.Status != http.StatusOK || got.Text != "buy milk" {
		t.Errorf("Ada's call of 2026-07-28 = %d %s, want 200 buy milk", got.Status, got.Body)
	}
	if got := p.Modern("today", bob); !strings.HasPrefix(got.Text, `the policy of server "notes" denies you tools/call`) {
		t.Errorf("Bob's call of 2026-07-28 = %d %s, want the policy's refusal", got.Status, got.Body)
	}
	session := p.Open(ada)
	if got := p.Legacy(session, "today", ada); got.Status != http.StatusOK || got.Text != "buy milk" {
		t.Errorf("Ada's call of 2025-11-25 = %d %s, want 200 buy milk", got.Status, got.Body)
	}
	if got := p.Legacy(session, "today", bob); got.Status != http.StatusNotFound {
		t.Errorf("Bob's call in Ada's session = %d %s, want 404", got.Status, got.Body)
	}
}
