package output

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Lines of many goroutines stay whole around a status that changes.
func TestScreenConcurrent(t *testing.T) {
	term := new(bridgetest.Terminal)
	s := NewScreen(term, func() int { return 40 })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 100 {
				s.Show([]string{"status " + strconv.Itoa(n)})
				_, _ = io.WriteString(s, "a line\n")
			}
		})
	}
	wg.Wait()
	s.Show(nil)
	if got := term.Seen(); len(got) != 400 || slices.ContainsFunc(got, func(l string) bool { return l != "a line" }) {
		t.Errorf("the terminal shows %d lines, want 400: %q", len(got), got[:min(len(got), 10)])
	}
}

func TestScreenOf(t *testing.T) {
	term := new(bridgetest.Terminal)
	s := NewScreen(term, func() int { return 40 })
	if ScreenOf(s) != s || ScreenOf(new(bridgetest.Log)) != nil {
		t.Error("ScreenOf does not tell terminals from others")
	}
	log := NewLog(s, config.Log{Level: "info", Format: "auto"}, nil)
	log.Info("seen")
	if got := term.Seen(); len(got) != 1 || !strings.Contains(got[0], "\x1b[") {
		t.Errorf("logged %q, want text with colours", got)
	}
}
