package member

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// What replicas of other versions have written is read, and what this one writes is what they
// read.
func TestForms(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	one := replicas.Replica{Instance: "AAAAAAAA", Addr: "10.0.0.1:2528", Version: "v1.2.3"}
	draining, later, serving := one, one, one
	draining.Draining, later.Revision = true, 7
	serving.Revision, serving.Ready, serving.TLS = 3, true, true
	slow := serving
	slow.Pace = replicas.Pace(5 * time.Second)
	serving.Servers = replicas.ServersOf(slices.Values([]string{"files", "weather"}))
	for _, tt := range []struct {
		name  string
		want  replicas.Replica
		beat  uint64
		left  bool
		quiet time.Duration
		other bool // written by another version
	}{
		{"member", one, 17, false, 0, false},
		{"member/draining", draining, 18, false, 0, false},
		{"member/left", draining, 19, true, 0, false},
		{"member/revision", later, 17, false, 0, false},
		{"member/serving", serving, 21, false, 0, false},
		{"member/slow", slow, 22, false, 0, false},
		{"member/quiet", one, 23, false, 3500 * time.Millisecond, false},
		{"member/later", later, 20, false, 0, true},
	} {
		if !tt.other {
			text, err := encode(tt.want, tt.beat, tt.left, tt.quiet)
			if err != nil {
				t.Fatal(err)
			}
			forms.Want(tt.name, string(text))
		}
		got, rec, err := decode("AAAAAAAA", []byte(forms.Text(tt.name)))
		if err != nil || got != tt.want || rec.Beat != tt.beat || rec.Left != tt.left || rec.Quiet != tt.quiet.Milliseconds() {
			t.Errorf("%s is read as %+v, beat %d, left %v, quiet %d, %v", tt.name, got, rec.Beat, rec.Left, rec.Quiet, err)
		}
	}
}

// A record that can't be read has its replica not count, and is told of once in a while.
func TestUnreadRecord(t *testing.T) {
	var log bytes.Buffer
	ps, now := newPeers(newJournal(slog.New(slog.NewTextHandler(&log, nil))), replicas.Unobserved{}), time.Now()
	for i, record := range []string{`{"addr":["10.0.0.1:2528"],"beat":1}`, `{"address":"10.0.0.1:2528","beat":2}`, `no JSON`} {
		ps.hear(now.Add(time.Duration(i)*time.Minute/4), Snapshot{Members: map[string][]byte{"BBBBBBBB": []byte(record)}}, replicas.Replica{Instance: "AAAAAAAA"}, false)
	}
	if n := strings.Count(log.String(), "compare the versions"); n != 1 || len(ps.living()) != 0 {
		t.Errorf("%d warnings and %d replicas, want 1 and 0:\n%s", n, len(ps.living()), &log)
	}
	ps.hear(now.Add(time.Minute), Snapshot{Members: map[string][]byte{"BBBBBBBB": []byte(`no JSON`)}}, replicas.Replica{Instance: "AAAAAAAA"}, false)
	if n := strings.Count(log.String(), "compare the versions"); n != 2 {
		t.Errorf("%d warnings after a while, want 2", n)
	}
}

// A claim of a later version counts by its first two words; what can't be read is nobody's.
func TestFormsOfClaims(t *testing.T) {
	want := claim{holder: "AAAAAAAA", epoch: 9223372036854775807}
	for want, c := range map[string]claim{
		"AAAAAAAA 9223372036854775807": want,
		"AAAAAAAA 3 2":                 {holder: "AAAAAAAA", epoch: 3, anew: 2},
		"AAAAAAAA 3 0 5000":            {holder: "AAAAAAAA", epoch: 3, pace: replicas.Pace(5 * time.Second)},
	} {
		if got := c.value(); got != want || parse(want) != c {
			t.Errorf("a claim is written as %q, and read as %+v, want %q and %+v", got, parse(want), want, c)
		}
	}
	for text, want := range map[string]claim{
		"AAAAAAAA 9223372036854775807":    want,
		"AAAAAAAA 3 new=1 another":        {holder: "AAAAAAAA", epoch: 3},
		"":                                {},
		"AAAAAAAA":                        {},
		"AAAAAAAA -1":                     {},
		`{"holder":"AAAAAAAA","epoch":1}`: {},
	} {
		if got := parse(text); got != want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
}
