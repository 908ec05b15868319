package access

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// stalled returns an audit log on which lines can't be written.
func stalled(t *testing.T, required bool) *audit.Log {
	t.Helper()
	log, err := audit.Open(audit.Options{Path: t.TempDir() + "/audit", Required: required, MaxPending: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	log.Write(&audit.Record{Name: "the one that is too many"})
	return log
}

// Every request that would have a line is refused while the log is required and can't be
// written: with 503, in both eras, and with what to do about it.
func TestRequiredAuditRefuses(t *testing.T) {
	for _, required := range []bool{true, false} {
		counts := &limits{}
		c := New(Options{Server: "files", Audit: stalled(t, required), Metrics: counts})
		check := func(what string, err error) {
			t.Helper()
			r := (*mcp.Refusal)(nil)
			switch refused := errors.As(err, &r); {
			case refused != required:
				t.Errorf("required %v: %s: %v", required, what, err)
			case refused && (r.Status != 503 || !r.Later || r.RetryAfter != time.Second || !strings.Contains(r.Err.Message, "audit log") || !strings.Contains(r.Err.Message, "try again")):
				t.Errorf("%s: %+v", what, r)
			}
		}
		if required && !c.opts.Audit.Refuses() {
			t.Fatal("the log can be written")
		}
		check("initialize", c.Open(requestOf(spec.MethodInitialize, "{}")))
		check("server/discover", c.Open(requestOf(spec.MethodDiscover, "{}")))
		check("a relayed initialize", c.OpenRelay(requestOf(spec.MethodInitialize, "{}"), &wire.Message{}))
		check("subscriptions/listen", c.Admit(requestOf(spec.MethodListen, `{"notifications":{}}`)))
		h := c.Handler(fixed{[]byte("{}")})
		for _, method := range []string{spec.MethodToolsCall, spec.MethodToolsList} {
			_, err := h.Serve(context.Background(), requestOf(method, `{"name":"a"}`), nil)
			check(method, err)
		}
		if _, err := h.Serve(context.Background(), requestOf(spec.MethodPing, "{}"), nil); err != nil {
			t.Errorf("ping: %v", err)
		}
		if want := 6; required && (len(counts.hit) != want || counts.hit[0] != "files audit") {
			t.Errorf("counted %q, want %d of the audit log", counts.hit, want)
		}
	}
}
