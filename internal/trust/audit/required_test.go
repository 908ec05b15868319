package audit

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

var errFull = errors.New("no space left on device")

// A disk is a target with room for so many bytes.
type disk struct {
	mu     sync.Mutex
	text   bytes.Buffer
	room   int // bytes left; negative for any number
	stuck  chan struct{}
	synced error
	isNew  bool // the next write is to another file
}

func (d *disk) Write(text []byte) (int, error) {
	if d.stuck != nil {
		<-d.stuck
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.room < 0 || len(text) <= d.room {
		d.room = max(d.room-len(text), min(d.room, 0))
		return d.text.Write(text)
	}
	n, _ := d.text.Write(text[:d.room])
	d.room = 0
	return n, errFull
}

func (d *disk) refresh() (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fresh := d.isNew
	d.isNew = false
	return fresh, nil
}

func (d *disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.synced
}

func (d *disk) Close() error { return nil }

// have makes room for so many more bytes, and returns what was written.
func (d *disk) have(room int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = room
	return d.text.String()
}

// opened returns a Log that writes to d. It ends with the test.
func opened(t *testing.T, d *disk, o Options) (*Log, *losses, *bridgetest.Log) {
	t.Helper()
	counts, logs := &losses{}, &bridgetest.Log{}
	o.MaxPending = max(o.MaxPending, 1<<20)
	o.Metrics, o.Logger = counts, slog.New(slog.NewTextHandler(logs, nil))
	l := start(o, d)
	t.Cleanup(func() { _ = l.Close() })
	return l, counts, logs
}

// A required log refuses requests from the first write that fails on, until one succeeds, and
// no line is lost nor torn.
func TestRequiredUntilAWriteSucceeds(t *testing.T) {
	for _, required := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := &disk{room: 200}
			l, counts, logs := opened(t, d, Options{Required: required})
			names := []string{"first", "second", "third", "fourth"}
			for _, name := range names[:3] { // of which the second is torn
				l.Write(&Record{Method: "tools/call", Name: name})
			}
			time.Sleep(flushTime)
			synctest.Wait()
			if l.Refuses() != required || !counts.failing.Load() {
				t.Errorf("required %v: Refuses() = %v, failing %v on a full disk", required, l.Refuses(), counts.failing.Load())
			}
			l.Write(&Record{Method: "tools/call", Name: names[3]}) // of a request in flight
			time.Sleep(time.Minute)
			if l.Refuses() != required {
				t.Errorf("required %v: Refuses() = %v after a minute", required, l.Refuses())
			}
			if got := logs.String(); strings.Count(got, "level=ERROR") > 7 || !strings.Contains(got, "they are kept and tried again") {
				t.Errorf("log of a minute: %s", got)
			}
			d.have(-1)
			time.Sleep(2 * retryTime)
			synctest.Wait()
			if l.Refuses() || counts.failing.Load() || !strings.Contains(logs.String(), "written again") {
				t.Errorf("required %v: Refuses() = %v, failing %v once there is room: %s", required, l.Refuses(), counts.failing.Load(), logs)
			}
			text := d.have(-1)
			at := 0
			for _, name := range names {
				i := strings.Index(text[at:], `"name":"`+name+`"`)
				if i < 0 {
					t.Fatalf("%s is missing:\n%s", name, text)
				}
				at += i
			}
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, `{"time":"`) || !strings.HasSuffix(line, "}\n") || strings.Count(line, `{"time":"`) != 1 {
					t.Errorf("torn: %q", line)
				}
			}
			if counts.lost.Load() != 0 {
				t.Errorf("%d lines were lost", counts.lost.Load())
			}
		})
	}
}

// A line that was torn at the end of a file is written anew where the next file begins.
func TestTornLineInAnotherFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 20}
		l, _, _ := opened(t, d, Options{})
		l.Write(&Record{Name: "one"})
		time.Sleep(flushTime)
		synctest.Wait()
		torn := d.have(-1)
		d.mu.Lock()
		d.isNew = true
		d.mu.Unlock()
		time.Sleep(2 * retryTime)
		synctest.Wait()
		if next := strings.TrimPrefix(d.have(-1), torn); len(torn) != 20 || !strings.HasPrefix(next, `{"time"`) {
			t.Errorf("after %q the next file has %q", torn, next)
		}
	})
}

// Some disks say only at a sync that they are full.
func TestRequiredIsOnTheDisk(t *testing.T) {
	for _, required := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := &disk{room: -1, synced: errFull}
			l, _, _ := opened(t, d, Options{Required: required})
			l.Write(&Record{Name: "one"})
			time.Sleep(flushTime)
			synctest.Wait()
			if l.Refuses() != required {
				t.Errorf("required %v: Refuses() = %v", required, l.Refuses())
			}
			d.mu.Lock()
			d.synced = nil
			d.mu.Unlock()
			time.Sleep(2 * retryTime)
			synctest.Wait()
			if l.Refuses() {
				t.Error("Refuses() = true after a sync")
			}
		})
	}
}

// A write that hangs makes lines wait. Requests are refused before one is lost.
func TestRequiredBeforeLinesAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: -1, stuck: make(chan struct{})}
		l, counts, logs := opened(t, d, Options{Required: true})
		for n := 0; !l.Refuses(); n++ {
			if l.Write(&Record{Name: strings.Repeat("x", maxText)}); n == 10_000 {
				t.Fatal("requests are never refused")
			}
			if n == 10 {
				time.Sleep(flushTime) // it hangs now
			}
		}
		for range 100 { // of requests in flight
			l.Write(&Record{Name: "late"})
		}
		if !strings.Contains(logs.String(), "too many lines wait") || !counts.failing.Load() {
			t.Errorf("failing %v, log: %s", counts.failing.Load(), logs)
		}
		close(d.stuck)
		time.Sleep(2 * retryTime)
		synctest.Wait()
		if l.Refuses() || counts.lost.Load() != 0 || strings.Count(d.have(-1), "late") != 100 {
			t.Errorf("Refuses() = %v, %d lines lost, %d of 100 there", l.Refuses(), counts.lost.Load(), strings.Count(d.have(-1), "late"))
		}
	})
}
