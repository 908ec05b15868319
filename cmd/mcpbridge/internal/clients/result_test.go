package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// results are those of a client that mcpbridge refuses, of one that gets the same, and of one that
// limps through mcpbridge alone.
func results() []Result {
	ide := Client{ID: "ide", Version: "1.2", Date: "2026-07-28", Source: []string{"https://a.example/x", "https://b.example"}, Note: "It sends \x1b[2J."}
	cli := Client{ID: "cli", Version: "3", Date: "2025-01-31", Source: []string{"https://c.example"}}
	bot := Client{ID: "a-long-bot", Version: "0.1", Date: "2026-01-01", Source: []string{"https://d.example"}}
	fine := Outcome{Connects: true, Revision: "2025-06-18"}
	limps := Outcome{Connects: true, Revision: "2025-06-18", Beside: []Refusal{{Message: "GET", Status: 400, Why: "no stream"}}}
	refused := Outcome{Refused: &Refusal{Message: "tools/list", Status: 418, Code: -32601, Why: "not\n \x1b[31mhere"}}
	return []Result{NewResult(&ide, fine, refused), NewResult(&cli, refused, refused), NewResult(&bot, fine, limps)}
}

func printed(t *testing.T, all []Result, asJSON, piped bool) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := Tell(&out, all, asJSON, piped)
	return out.String(), err
}

// Of one client everything is told, with where it is known from. What others say can't steer the
// terminal.
func TestTellOfOne(t *testing.T) {
	const note = "A command gets no headers: directly, the bodies alone were sent to it, and through mcpbridge all over HTTP.\n"
	for _, tt := range []struct {
		name  string
		which int
		piped bool
		want  string
		err   error
	}{
		{"one that mcpbridge refuses", 0, false, `ide 1.2, as of 2026-07-28: https://a.example/x, https://b.example
  It sends \x1b[2J.
directly           connects in 2025-06-18
through mcpbridge  tools/list is refused: 418 (-32601) not \x1b[31mhere
`, ErrWorse},
		{"one that the server refuses, a command", 1, true, note + `cli 3, as of 2025-01-31: https://c.example
directly           tools/list is refused: 418 (-32601) not \x1b[31mhere
through mcpbridge  tools/list is refused: 418 (-32601) not \x1b[31mhere
`, nil},
		{"one that limps", 2, false, `a-long-bot 0.1, as of 2026-01-01: https://d.example
directly           connects in 2025-06-18
through mcpbridge  connects in 2025-06-18, but GET is refused: 400 no stream
`, ErrWorse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := printed(t, results()[tt.which:tt.which+1], false, tt.piped); got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("Tell = %v, and prints\n%s\nwant %v and\n%s", err, got, tt.err, tt.want)
			}
		})
	}
}

// Many clients are a table of codes, with the reasons below it where mcpbridge is to blame.
func TestTellOfMany(t *testing.T) {
	const want = `client      version  as of       directly                             through mcpbridge
ide         1.2      2026-07-28  connects in 2025-06-18               tools/list is refused: 418 (-32601)
cli         3        2025-01-31  tools/list is refused: 418 (-32601)  the same
a-long-bot  0.1      2026-01-01  connects in 2025-06-18               connects in 2025-06-18, but GET is refused: 400
ide, through mcpbridge alone: tools/list is refused: 418 (-32601) not \x1b[31mhere
a-long-bot, through mcpbridge alone: connects in 2025-06-18, but GET is refused: 400 no stream
`
	if got, err := printed(t, results(), false, false); got != want || !errors.Is(err, ErrWorse) {
		t.Errorf("Tell = %v, and prints\n%s\nwant %v and\n%s", err, got, ErrWorse, want)
	}
}

// Programs read everything of each client, and the same verdict.
func TestTellAsJSON(t *testing.T) {
	for which, want := range []error{ErrWorse, nil, ErrWorse} {
		got, err := printed(t, results()[which:which+1], true, true)
		var read []struct {
			Client  string
			Bridged struct {
				Connects bool
				Refused  *Refusal
				Beside   []Refusal
			}
			Worse bool
		}
		if failed := json.Unmarshal([]byte(got), &read); failed != nil || len(read) != 1 || !errors.Is(err, want) {
			t.Fatalf("Tell = %v, and prints %s (%v), want %v", err, got, failed, want)
		}
		r, is := read[0], results()[which]
		if r.Client != is.Client || r.Worse != (want != nil) || r.Bridged.Connects != is.Bridged.Connects || len(r.Bridged.Beside) != len(is.Bridged.Beside) || !r.Bridged.Connects && *r.Bridged.Refused != *is.Bridged.Refused {
			t.Errorf("Tell prints %s, want %+v", got, is)
		}
	}
}

// full is a disk that is.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// What could not be printed is the error, rather than what it would have said.
func TestTellToAFullDisk(t *testing.T) {
	for _, all := range [][]Result{results()[:1], results()} {
		whole, _ := printed(t, all, false, true)
		for room := range len(whole) {
			if err := Tell(&full{room}, all, false, true); !errors.Is(err, errFull) {
				t.Fatalf("Tell = %v with room for %d of %d bytes, want %v", err, room, len(whole), errFull)
			}
		}
	}
}

// A reason is one line, of a length that fits, and never ends within a character.
func TestRefusalIsCut(t *testing.T) {
	r := Refusal{Message: "initialize", Why: strings.Repeat("é", shownWhy)}
	if got, want := r.String(), "initialize is refused "+strings.Repeat("é", shownWhy/2)+"…"; got != want {
		t.Errorf("String() = %s, want %s", got, want)
	}
	r.Why = "x" + r.Why
	if got, want := r.String(), "initialize is refused x"+strings.Repeat("é", shownWhy/2-1)+"…"; got != want {
		t.Errorf("String() = %s, want %s", got, want)
	}
}
