package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A happening is a line of a transcript with its time.
type happening struct {
	section string // "client 1: stdio"
	at      time.Duration
	text    string
}

// happenings returns the lines of a transcript. One without a time of its own has that of the
// line before.
func happenings(t *testing.T, transcript string) (out []happening) {
	t.Helper()
	var last happening
	for line := range strings.Lines(transcript) {
		line = strings.TrimRight(line, "\n")
		if title, ok := strings.CutPrefix(line, "-- "); ok {
			last = happening{section: strings.TrimSuffix(title, " --")}
			continue
		}
		if last.section == "" || line == "" {
			continue
		}
		if begin, rest, _ := strings.Cut(line, " "); begin != "" {
			at, err := time.ParseDuration(begin)
			if err != nil {
				t.Fatal(err)
			}
			last.at, line = at, rest
		}
		last.text = strings.TrimSpace(line)
		out = append(out, last)
	}
	return out
}

// cancelledAt returns when the first call was cancelled on one side: by a notification, or by
// the end of its HTTP request.
func cancelledAt(all []happening, side string) (time.Duration, bool) {
	i := slices.IndexFunc(all, func(h happening) bool {
		hangsUp := h.text == "= the client hung up" && strings.HasSuffix(h.section, ": POST tools/call hang")
		return strings.HasPrefix(h.section, side) && (hangsUp || strings.HasPrefix(h.text, ">") && strings.Contains(h.text, `"method":"notifications/cancelled"`))
	})
	if i < 0 {
		return 0, false
	}
	return all[i].at, true
}

// A cancellation is at the server within 50 ms, whoever speaks what over what: M2L-13, L2M-15,
// S-01 and S-02. TestTranscripts holds the transcripts against what happens.
func TestCancellationIsPrompt(t *testing.T) {
	for _, c := range viaHTTPAndStdio() {
		t.Run(c.name(), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(transcripts, "cancel", c.name()+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			all := happenings(t, string(text))
			from, asked := cancelledAt(all, "client")
			to, told := cancelledAt(all, "server")
			if !asked || !told || to < from || to-from > 50*time.Millisecond {
				t.Errorf("cancelled at %v (%v), and at the server at %v (%v); want that within 50ms", from, asked, to, told)
			}
		})
	}
}

// While a call runs, comments keep its stream open from the first 15 s on, and nothing else is
// sent that the server did not say: progress would restart the clock of a client whose server
// hangs.
func TestF10CommentsKeepLongCallsOpen(t *testing.T) {
	const every = 15 * time.Second
	f := flow{name: "long", intro: "A long call.", legacy: cancelCalls, modern: cancelCalls}
	for _, c := range append(viaHTTPAlone(), cell{side{false, viaSSE}, side{true, viaHTTP}}) {
		t.Run(c.name(), func(t *testing.T) {
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, f, c) })
			call := "POST tools/call hang"
			if c.client.over == viaSSE {
				call = "GET" // which carries the answers
			}
			var last time.Duration
			comments := 0
			for _, h := range happenings(t, got) {
				switch {
				case !strings.HasPrefix(h.section, "client") || !strings.Contains(h.section, call):
				case strings.HasPrefix(h.text, ">"):
					last, comments = h.at, 0
				case h.text == "< :":
					if h.at-last > every {
						t.Fatalf("nothing was sent between %v and %v, want comments at least every %v:\n%s", last, h.at, every, got)
					}
					last = h.at
					comments++
				case strings.Contains(h.text, "notifications/progress"):
					t.Errorf("the client was sent %s", h.text)
				}
			}
			if least := int(time.Hour/every) - 1; comments < least {
				t.Errorf("%d comments in an hour, want %d at least:\n%.4000s", comments, least, got)
			}
		})
	}
}
