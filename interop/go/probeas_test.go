package interop

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// played is what mcpbridge probe --as all --json prints of one client.
type played struct {
	Client            string
	Directly, Bridged struct {
		Connects bool
		Revision string
	}
	Worse bool
}

// A server that others wrote takes what its own SDK's client sends first, and the gateway
// takes that in the client's era.
func TestProbeAsPublishedClients(t *testing.T) {
	for _, tt := range []struct {
		server   string
		directly map[string]string // the revision by client; empty if it is refused
		bridged  map[string]string
	}{
		{"everything-http",
			map[string]string{"typescript-1": "2025-11-25", "typescript-2-auto": "2025-11-25", "python-1": "2025-11-25", "go-sdk": "2025-11-25"},
			map[string]string{"typescript-1": "2025-11-25", "typescript-2-auto": "2026-07-28", "python-1": "2025-11-25", "go-sdk": "2026-07-28"}},
		{"modern-typescript",
			map[string]string{"typescript-1": "", "typescript-2-auto": "2026-07-28", "python-1": "", "go-sdk": "2026-07-28"},
			map[string]string{"typescript-1": "2025-11-25", "typescript-2-auto": "2026-07-28", "python-1": "2025-11-25", "go-sdk": "2026-07-28"}},
	} {
		t.Run(tt.server, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, bridgeBinary, "probe", "--json", "--as", "all", w.urls[tt.server]).Output()
			var all []played
			if wrong := json.Unmarshal(out, &all); wrong != nil {
				t.Fatalf("probe --as all: %v, %v; it printed %s", err, wrong, out)
			}
			worse := 0
			for _, p := range all {
				t.Logf("%s: directly %+v, through mcpbridge %+v", p.Client, p.Directly, p.Bridged)
				if want, ok := tt.directly[p.Client]; ok && (p.Directly.Revision != want || p.Directly.Connects != (want != "")) {
					t.Errorf("%s directly: %+v, want %q", p.Client, p.Directly, want)
				}
				if want, ok := tt.bridged[p.Client]; ok && (p.Bridged.Revision != want || !p.Bridged.Connects || p.Worse) {
					t.Errorf("%s through mcpbridge: %+v, want %s", p.Client, p.Bridged, want)
				}
				if !p.Bridged.Connects {
					t.Errorf("%s is refused by mcpbridge: %+v", p.Client, p.Bridged)
				}
				if p.Worse {
					worse++
				}
			}
			if len(all) <= len(tt.directly) {
				t.Errorf("%d clients are known", len(all))
			}
			if failed := (*exec.ExitError)(nil); errors.As(err, &failed) != (worse > 0) {
				t.Errorf("exit: %v, and mcpbridge refuses what the server takes %d times", err, worse)
			}
		})
	}
}
