package replicas

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
)

// A transcript is what one client saw on one server.
type transcript []moment

// A moment is one request: what came back, and what came with it.
type moment struct {
	what string
	with []string
}

func (m moment) String() string {
	return strings.Join(append([]string{m.what}, m.with...), "\n        with ")
}

// without returns the transcript with {dir} for a directory, which results name.
func (saw transcript) without(dir string) transcript {
	for i := range saw {
		saw[i].what = strings.ReplaceAll(saw[i].what, dir, "{dir}")
		for k := range saw[i].with {
			saw[i].with[k] = strings.ReplaceAll(saw[i].with[k], dir, "{dir}")
		}
	}
	return saw
}

// wantNoneLost wants no client to have lost its session: what others see is compared with
// this.
func wantNoneLost(t *testing.T, found map[cell]transcript) {
	t.Helper()
	for at, saw := range found {
		for i, m := range saw {
			if strings.Contains(m.what, "Session terminated") || strings.Contains(m.what, "-32001") {
				t.Errorf("%s, step %d: %.600v", at, i, m)
			}
		}
	}
}

// wantTranscripts wants each of found to be the one of a single replica, and whole.
func wantTranscripts(t *testing.T, found, single map[cell]transcript) {
	t.Helper()
	for at, got := range found {
		want := single[at]
		if steps := len(tours[at.server]) + 2; len(got) != steps || len(want) != steps {
			t.Errorf("%s: %d of %d steps, and %d of a single replica; the last is %.600v", at, len(got), steps, len(want), got[len(got)-1])
			continue
		}
		for i, m := range got {
			if m.what != want[i].what || !slices.Equal(m.with, want[i].with) {
				t.Errorf("%s, step %d:\n  got   %.900v\n  want  %.900v", at, i, m, want[i])
				break
			}
		}
	}
	t.Logf("%d cells", len(found))
}

// gather returns what comes with a step, even after its result: want of it, or if that is -1
// all that comes until nothing has come for a while. Either way more than that may come a
// moment later.
func gather(c *steer.Client, at cell, s step, want int) []string {
	var progress, messages, asked []string
	patience := 30 * time.Millisecond
	if want < 0 && s.tells {
		patience = 300 * time.Millisecond
	}
	for begun, last := time.Now(), time.Now(); ; time.Sleep(2 * time.Millisecond) {
		n := len(progress) + len(messages) + len(asked)
		progress = append(progress, take(c.Progress, at)...)
		messages = append(messages, take(c.Messages, at)...)
		asked = append(asked, take(c.Asked, at)...)
		now := len(progress) + len(messages) + len(asked)
		if now > n {
			last = time.Now()
		}
		if time.Since(last) > patience && (now >= want || time.Since(begun) > recovery) {
			return slices.Concat(progress, messages, asked)
		}
	}
}

// take returns what lies in an inbox.
func take(inbox *steer.Inbox[any], at cell) (lines []string) {
	for {
		item, ok := inbox.Take(0)
		if !ok {
			return lines
		}
		if text, err := json.Marshal(item); err != nil || !mayMiss(at.client, text) {
			lines = append(lines, said("", item, nil))
		}
	}
}

// mayMiss reports whether a client may or may not tell of something: the SDKs for TypeScript
// drop the progress that is read at once with the result.
func mayMiss(client string, item []byte) bool {
	var p struct{ Progress *float64 }
	node := strings.HasPrefix(client, "sdk-") || strings.HasPrefix(client, "typescript-")
	return node && json.Unmarshal(item, &p) == nil && p.Progress != nil
}

// ofTheLedger is what the server counts for all its clients.
var ofTheLedger = regexp.MustCompile(`\\*"(seq|at)\\*":\d+,?`)

func said(what string, result any, err error) string {
	text, err2 := json.Marshal(result)
	switch {
	case err != nil:
		return fmt.Sprintf("%s = error %v", what, err)
	case err2 != nil:
		return fmt.Sprintf("%s = %v", what, err2)
	}
	return fmt.Sprintf("%s = %s", what, ofTheLedger.ReplaceAll(text, nil))
}
