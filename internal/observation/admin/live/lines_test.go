package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// The last 200 lines of a server are kept, without secrets, until it is not served any more.
func TestLines(t *testing.T) {
	l := NewLines(redact.New("the-secret-of-it"))
	for i := range 250 {
		l.Add("docs", fmt.Sprintf("line %d the-secret-of-it", i))
	}
	l.Add("files", "one")
	got := l.After("docs", 0)
	if len(got) != keptLines || got[0].Seq != 51 || strings.Contains(got[0].Text, "secret") || !strings.HasPrefix(got[199].Text, "line 249 ") || got[199].Time.IsZero() {
		t.Errorf("%d lines, the first %+v", len(got), got[0])
	}
	if got := l.After("docs", 248); len(got) != 2 || got[0].Seq != 249 {
		t.Errorf("after 248: %+v", got)
	}
	l.Keep(func(server string) bool { return server == "files" })
	if len(l.After("docs", 0)) != 0 || len(l.After("files", 0)) != 1 || l.bytes != 3 {
		t.Errorf("docs is not forgotten: %+v, %d bytes", l.After("docs", 0), l.bytes)
	}
}

// Lines are bounded in bytes: each, those of a server, and those of all.
func TestLinesAreBounded(t *testing.T) {
	l := NewLines(nil)
	long := strings.Repeat("x", 10*keptLine)
	for i := range 3 * keptAll / keptBytes {
		for range 100 {
			l.Add(fmt.Sprint("server", i), long)
		}
		of := l.of[fmt.Sprint("server", i)]
		if of.bytes > keptBytes || l.bytes > keptAll {
			t.Fatalf("%d bytes of a server, %d of all", of.bytes, l.bytes)
		}
	}
	if got := l.After("server0", 0); len(got) == 0 || len(got[0].Text) > keptLine+len("…") {
		t.Errorf("%d lines of the first", len(got))
	}
}

// Where messages are not shown, nothing is kept.
func TestNoLines(t *testing.T) {
	var l *Lines
	l.Add("docs", "line")
	l.Keep(func(string) bool { return false })
	if got := l.After("docs", 0); got == nil || len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
