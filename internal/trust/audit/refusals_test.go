package audit

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// attempt adds a refused credential of a sender.
func attempt(l *Log, from int) {
	addr := netip.AddrFrom4([4]byte{10, 0, byte(from >> 8), byte(from)})
	l.Refused(&Record{
		Time: time.Now(), Method: MethodAuthenticate, Kind: "credential", Server: "files", Decision: "deny", Reason: "invalid_token: no",
		Address: fmt.Sprintf("%s:4711", addr),
	}, netip.PrefixFrom(addr, 32), "invalid_token")
}

// The first attempt has its line at once, and those that follow are counted in one line.
func TestRefusedAttemptsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: -1}
		l, _, _ := opened(t, d, Options{})
		lines := func() []string { return strings.Split(strings.TrimSpace(d.have(-1)), "\n") }
		attempt(l, 1)
		time.Sleep(flushTime)
		synctest.Wait()
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], `"address":"10.0.0.1:4711"`) || strings.Contains(got[0], "times") {
			t.Fatalf("after the first attempt: %q", got)
		}
		for range 500 {
			attempt(l, 1)
		}
		attempt(l, 2)
		time.Sleep(refusalTime + flushTime)
		synctest.Wait()
		if got := lines(); len(got) != 3 || !strings.Contains(got[1], "10.0.0.2:") || !strings.Contains(got[2], `"times":500`) || !strings.Contains(got[2], "10.0.0.1:") {
			t.Fatalf("after many: %q", got)
		}
		for range 7 {
			attempt(l, 1)
		}
		_ = l.Close() // the disk has room
		if got := lines(); len(got) != 4 || !strings.Contains(got[3], `"times":7`) {
			t.Errorf("at the end: %q", got)
		}
	})
}

// Whoever sends credentials that are refused, from however many addresses, makes twelve lines
// in ten seconds, and every attempt is counted (CWE-779).
func TestRefusedAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: -1}
		l, _, _ := opened(t, d, Options{})
		const seconds, each = 300, 1000
		for range seconds {
			for i := range each {
				attempt(l, i)
			}
			time.Sleep(time.Second)
		}
		_ = l.Close() // the disk has room
		text := d.have(-1)
		n, attempts := 0, 0
		for line := range strings.Lines(text) {
			var got struct{ Times int }
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			n++
			attempts += max(got.Times, 1)
		}
		if most := 12 * (seconds/10 + 1); n > most || attempts != seconds*each {
			t.Errorf("%d lines, want at most %d; of %d attempts %d are told", n, most, seconds*each, attempts)
		}
		if perDay := len(text) / seconds * 86400; perDay > 40<<20 {
			t.Errorf("%d MiB a day", perDay>>20)
		}
	})
}
