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

// A moment is one request: what came back, and what came with it or after it.
type moment struct {
	what       string
	with       []string
	told, want tally
}

func (m moment) String() string {
	return strings.Join(append([]string{m.what}, m.with...), "\n        with ")
}

// wrong says what is lost, or came twice, or is missing for another reason whatever others saw;
// "" if nothing is.
func (m moment) wrong() string {
	for _, sign := range []string{"Session terminated", "-32001", " = error no reply: ", " = error the client has ended"} {
		if strings.Contains(m.what, sign) {
			return sign
		}
	}
	if m.told != m.want {
		return fmt.Sprintf("%d progress and %d messages are told, want %d and %d", m.told.progress, m.told.messages, m.want.progress, m.want.messages)
	}
	if i := slices.IndexFunc(m.with, func(line string) bool { return strings.HasPrefix(line, deaf) }); i >= 0 {
		return m.with[i]
	}
	return ""
}

// deaf begins what a client had to hear, and did not.
const deaf = "did not hear "

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

// wantWhole wants nothing to be lost or doubled: what others see is compared with this.
func wantWhole(t *testing.T, found map[cell]transcript) {
	t.Helper()
	for at, saw := range found {
		for i, m := range saw {
			if wrong := m.wrong(); wrong != "" {
				t.Errorf("%s, step %d: %s: %.600v", at, i, wrong, m)
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
			if m.what != want[i].what || !slices.Equal(m.with, want[i].with) || m.wrong() != "" {
				t.Errorf("%s, step %d: %s\n  got   %.900v\n  want  %.900v", at, i, m.wrong(), m, want[i])
				break
			}
		}
	}
	t.Logf("%d cells", len(found))
}

// gather adds what the client tells beside the result, until that is as much as the server
// tells: some SDKs tell of it after the result. No clock says that no more comes: what comes
// later is added, too, before the next step.
func (m *moment) gather(c *steer.Client, at cell) {
	for end := time.Now().Add(recovery); ; time.Sleep(10 * time.Millisecond) {
		m.take(c, at)
		if m.told.progress >= m.want.progress && m.told.messages >= m.want.messages || time.Now().After(end) {
			return
		}
	}
}

// take adds what lies in the inboxes.
func (m *moment) take(c *steer.Client, at cell) {
	progress, messages := drain(c.Progress, at), drain(c.Messages, at)
	m.told.progress += len(progress)
	m.told.messages += len(messages)
	m.with = slices.Concat(m.with, progress, messages, drain(c.Asked, at))
}

// drain returns what lies in an inbox.
func drain(inbox *steer.Inbox[any], at cell) (lines []string) {
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
	return inJavaScript(client) && json.Unmarshal(item, &p) == nil && p.Progress != nil
}

func inJavaScript(client string) bool {
	return strings.HasPrefix(client, "sdk-") || strings.HasPrefix(client, "typescript-")
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
