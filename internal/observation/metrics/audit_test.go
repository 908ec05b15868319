package metrics

import (
	"fmt"
	"strings"
	"testing"
)

// A log that ends after a reload says nothing of the one that has replaced it, which fails, too.
func TestAuditFailsInOneOfTwoLogs(t *testing.T) {
	m := New("v1")
	for i, failing := range []bool{true, true, false, false} {
		m.AuditFailing(failing)
		want := 1
		if i == 3 {
			want = 0
		}
		if text := scrape(t, m); !strings.Contains(text, fmt.Sprintf("\nmcpbridge_audit_failing %d\n", want)) {
			t.Errorf("after step %d of two logs that fail and then don't: %s, want %d", i, text, want)
		}
	}
}
