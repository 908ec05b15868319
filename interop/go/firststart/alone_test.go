package firststart

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestU01TwoAtOnce has two clients at once on a server of which only one process may
// run. The first has a call under way when the second comes, which can't be served
// then; it is told why, and by which key it could be. With that key one process serves
// both.
func TestU01TwoAtOnce(t *testing.T) {
	quick := []*sdk{go161, go180}
	for _, isolation := range []string{"principal", "shared"} {
		for _, first := range quick {
			for _, second := range quick {
				for _, capabilities := range []string{`{}`, `{"sampling":{}}`} {
					if first.modern() && second.modern() && capabilities == `{}` {
						continue // they have one profile, and one process, anyway
					}
					t.Run(fmt.Sprintf("%s/%s then %s %s", isolation, first.name, second.name, capabilities), func(t *testing.T) {
						t.Parallel()
						twoAtOnce(t, isolation, first, second, capabilities)
					})
				}
			}
		}
	}
}

// The calls of interop/legacy-go: one that takes a while, and one at once.
const (
	waits   = `{"name":"wait","arguments":{"nonce":"first","ms":5000}}`
	returns = `{"name":"text","arguments":{"size":3}}`
)

func twoAtOnce(t *testing.T, isolation string, first, second *sdk, capabilities string) {
	at := newStand(t, func(starts, dir string) []string {
		return []string{fill("{bin}/odd"), "-starts", starts, "-lock", filepath.Join(dir, "lock"), fill("{bin}/legacy-go"), "-ledger", filepath.Join(dir, "ledger")}
	})
	a, b := start(t, first, first.argv, first.revision), start(t, second, second.argv, second.revision)
	v := at.serveWith(map[string]any{"isolation": isolation})
	defer v.stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := a.open(ctx, v.to); err != nil {
		t.Fatalf("the first client: %v; mcpbridge wrote:\n%s", err, v.Log())
	}
	waiting, err := a.Begin("tools/call", json.RawMessage(waits), false)
	if err != nil {
		t.Fatal(err)
	}
	rig.Until(t, time.Minute, "the call arrives", func() string {
		ledger, err := os.ReadFile(filepath.Join(at.dir, "ledger"))
		if err == nil && strings.Contains(string(ledger), `"first"`) {
			return ""
		}
		return fmt.Sprintf("the ledger is %q, %v", ledger, err)
	})
	to := v.to
	to.Capabilities = json.RawMessage(capabilities)
	err = b.open(ctx, to)
	if err == nil {
		_, err = b.Request(ctx, "tools/call", json.RawMessage(returns))
	}
	judgeSecond(t, isolation == "shared", err, v)
	got, err := a.Wait(ctx, waiting)
	if why := match.Mismatch("result", map[string]any{"content": []any{map[string]any{"text": "waited"}}}, got); err != nil || why != "" {
		t.Errorf("the first client's call: %v %s; mcpbridge wrote:\n%s", err, why, v.Log())
	}
	if n := at.started(); isolation == "shared" && n != 1 {
		t.Errorf("two clients of a shared process had the command started %d times, want once; mcpbridge wrote:\n%s", n, v.Log())
	}
	_, _ = a.close(ctx), b.close(ctx)
}

// judgeSecond holds what became of the second client.
func judgeSecond(t *testing.T, shared bool, err error, v *serving) {
	t.Helper()
	switch {
	case shared && err != nil:
		t.Errorf("the second client of a shared process: %v; mcpbridge wrote:\n%s", err, v.Log())
	case !shared && err == nil:
		t.Errorf("the second client was served beside the first, which a lock forbids; mcpbridge wrote:\n%s", v.Log())
	case !shared && (!strings.Contains(err.Error(), "isolation: shared") || !strings.Contains(err.Error(), "one process")):
		t.Errorf("the second client was told %q, want that the server seems to allow one process at a time, and isolation: shared; mcpbridge wrote:\n%s", err, v.Log())
	}
}
