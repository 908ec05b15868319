package firststart

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// A silence is a server that does not answer server/discover, and when it is answered
// in its place: a server that has read it is silent for 2 s before initialize follows,
// and for 5 s more before it is started anew.
type silence struct {
	unknown string // what the program odd does
	sleep   int    // seconds, before it reads anything
	starts  int
	answer  time.Duration // after mcpbridge's start
}

var silences = []silence{
	{"silent", 0, 1, 2 * time.Second},
	{"silent", 4, 1, 6 * time.Second},
	{"wedge", 0, 2, 7 * time.Second},
	{"wedge", 4, 2, 15 * time.Second},
}

// TestU02Silence sees when wrap gives up on a server that does not answer: never before
// the server has read what it was asked.
func TestU02Silence(t *testing.T) {
	t.Parallel() // with the other one that waits
	for _, s := range silences {
		t.Run(fmt.Sprintf("%s/%ds", s.unknown, s.sleep), func(t *testing.T) {
			t.Parallel()
			s.run(t)
		})
	}
}

func (s *silence) run(t *testing.T) {
	most := s.answer + 1500*time.Millisecond
	var took time.Duration
	for try := range tries {
		once := s.try(t)
		if try == 0 || once < took {
			took = once
		}
		if t.Failed() || took <= most {
			break
		}
	}
	if took < s.answer-100*time.Millisecond || took > most {
		t.Errorf("%s after %d s: server/discover was answered after %v, want %v to %v", s.unknown, s.sleep, took, s.answer, most)
	}
}

// try returns when server/discover was answered.
func (s *silence) try(t *testing.T) time.Duration {
	at := newStand(t, func(starts, dir string) []string {
		argv := []string{fill("{interop}/odd/slow"), starts, strconv.Itoa(s.sleep), fill("{bin}/odd"), "-unknown", s.unknown}
		return append(argv, fromMatrix(t, "go-1.6.1", dir).command()...)
	})
	p := openPipe(t, at.wrap().Argv...)
	a, _, err := p.ask(asksDiscover, 40*time.Second)
	took := time.Since(p.began)
	if err != nil || a.Error != nil {
		t.Errorf("%s after %d s: %+v, %v, after %v; mcpbridge wrote:\n%s", s.unknown, s.sleep, a, err, took, p.log.String())
	}
	if n := at.started(); n != s.starts {
		t.Errorf("%s after %d s: the command was started %d times, want %d; mcpbridge wrote:\n%s", s.unknown, s.sleep, n, s.starts, p.log.String())
	}
	if _, err := p.end(); err != nil {
		t.Errorf("ending mcpbridge: %v; it wrote:\n%s", err, p.log.String())
	}
	return took
}
