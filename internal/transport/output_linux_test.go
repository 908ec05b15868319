package transport

import (
	"io"
	"testing"
	"time"
)

// What a child has written before its end is read, also by a process that does not run meanwhile for as
// long as it waits for more.
func TestOutputOfAnEndedChildIsRead(t *testing.T) {
	r, w, err := openOutput()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // until then a descendant has it open
	const words = "{\"id\":1}\n"
	if _, err := io.WriteString(w, words); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	if err := r.SetReadDeadline(past); err != nil { // it has ended
		t.Fatal(err)
	}
	waits := 0
	got, err := io.ReadAll(drainer{r, func() time.Time {
		if waits++; waits == 1 {
			return past // the time is over before it reads
		}
		return drainUntil()
	}})
	if string(got) != words || err != nil || waits < 2 {
		t.Errorf("read %q, %v after %d waits, want %q", got, err, waits, words)
	}
}
