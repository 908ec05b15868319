package output

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

const table = "c.yaml can be used.\n\nlisten\t127.0.0.1:2526\n\nSERVER\tENDPOINT\tSTATE\tREASON\n" +
	"notebook\thttp://127.0.0.1:2526/mcp/notebook\tready\n" +
	"files\thttp://127.0.0.1:2526/mcp/files-with-a-long-name\tdown\tit ended with exit code 1 and has written \x1b[2J\n" +
	"日本\thttp://h/mcp\tstarting\t-\n\nthis line is longer than the terminal is, and goes on below itself at a space\n"

// Elsewhere than at a terminal, all is as tabwriter has it.
func TestTableElsewhere(t *testing.T) {
	var want, got bytes.Buffer
	tw := tabwriter.NewWriter(&want, 0, 8, 2, ' ', 0)
	_, _ = tw.Write([]byte(table))
	_ = tw.Flush()
	for _, whole := range []bool{false, true} {
		got.Reset()
		tab := NewTable(&got, whole)
		_, _ = tab.Write([]byte(table))
		if err := tab.Flush(); err != nil || got.String() != want.String() {
			t.Errorf("the table is %q, %v, want %q", got.String(), err, want.String())
		}
	}
}

// seen returns what a terminal of so many columns shows of the table.
func seen(columns int, whole bool, environ ...string) []string {
	term := new(bridgetest.Terminal)
	s := For(NewScreen(term, func() int { return columns }), environ)
	tab := NewTable(s, whole)
	_, _ = tab.Write([]byte(table))
	_ = tab.Flush()
	return term.Seen()
}

// At a terminal each line fits, the ends of URLs are there, and states have the colours of the log.
func TestTableAtTerminal(t *testing.T) {
	want := []string{
		"c.yaml can be used.", "", "listen  127.0.0.1:2526", "",
		"\x1b[2mSERVER\x1b[0m    \x1b[2mENDPOINT\x1b[0m                \x1b[2mSTATE\x1b[0m     \x1b[2mREASON\x1b[0m",
		"notebook  http://127…cp/notebook  \x1b[92mready\x1b[0m",
		"files     http://127…a-long-name  \x1b[91mdown\x1b[0m      it ended with exit co…",
		"日本      http://h/mcp            \x1b[93mstarting\x1b[0m  -",
		"", "this line is longer than the terminal is, and goes on below itself", "at a space",
	}
	got := seen(66, false)
	for i, line := range got {
		plain := strings.NewReplacer(faint, "", good, "", warns, "", bad, "", reset, "").Replace(line)
		if n := widthOf(plain); n > 66 {
			t.Errorf("line %d has %d columns: %q", i, n, plain)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the terminal shows\n%q, want\n%q", got, want)
	}
	for _, environ := range []string{"NO_COLOR=1", "TERM=dumb"} {
		if got := strings.Join(seen(66, false, environ), "\n"); strings.Contains(got, "\x1b") {
			t.Errorf("with %s the terminal shows %q", environ, got)
		}
	}
	if got := strings.Join(seen(66, false, "NO_COLOR="), "\n"); !strings.Contains(got, "\x1b") {
		t.Errorf("without a value NO_COLOR counts: %q", got)
	}
	if got := strings.Join(seen(66, true), "\n"); !strings.Contains(got, "files-with-a-long-name") || !strings.Contains(got, `has written \x1b[2J`) || !strings.Contains(got, "goes on below itself") {
		t.Errorf("whole, the terminal shows %s", got)
	}
	if got := seen(12, false); len(got) < len(want) {
		t.Errorf("a very narrow terminal shows %q", got)
	}
}

// Lists have a name and one line about it, which fits at a terminal; whole, they have all of it.
func TestEntry(t *testing.T) {
	const text = "  Reads a note that has a name,\nand prints it.\n\x1b[2J"
	entries := func(s *Screen, whole bool) string {
		var b bytes.Buffer
		var err error
		for _, e := range [][2]string{{"read", text}, {"none", ""}, {"a-name-that-is-as-long-as-the-terminal", text}} {
			if s != nil {
				err = Entry(s, "  ", e[0], e[1], whole)
			} else {
				err = Entry(&b, "  ", e[0], e[1], whole)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	want := fmt.Sprintf("  %-24s Reads a note that has a name,\n  none\n  a-name-that-is-as-long-as-the-terminal Reads a note that has a name,\n", "read")
	if got := entries(nil, false); got != want {
		t.Errorf("elsewhere: %q, want %q", got, want)
	}
	want = "  read\n      Reads a note that has a name,\n      and prints it.\n      \\x1b[2J\n  none\n"
	if got := entries(nil, true); !strings.HasPrefix(got, want) {
		t.Errorf("whole: %q, want %q", got, want)
	}
	term := new(bridgetest.Terminal)
	entries(NewScreen(term, func() int { return 40 }), false)
	lines := []string{fmt.Sprintf("  %-24s \x1b[2mReads a note…\x1b[0m", "read"), "  none", "  a-name-that-is-as-long-as-the-terminal"}
	if got := term.Seen(); !slices.Equal(got, lines) {
		t.Errorf("at a terminal: %q, want %q", got, lines)
	}
	term = new(bridgetest.Terminal)
	entries(NewScreen(term, func() int { return 24 }), true)
	lines = []string{"  read", "      Reads a note that", "      has a name,", "      and prints it.", `      \x1b[2J`}
	if got := term.Seen(); !slices.Equal(got[:len(lines)], lines) {
		t.Errorf("whole, at a terminal: %q, want %q", got, lines)
	}
}

// The log has no colours with NO_COLOR.
func TestLogWithoutColors(t *testing.T) {
	term := new(bridgetest.Terminal)
	NewLog(For(NewScreen(term, func() int { return 80 }), []string{"NO_COLOR=1"}), config.Log{Level: "info", Format: "auto"}, nil).Warn("seen", "n", 1)
	if got := strings.Join(term.Seen(), ""); !strings.Contains(got, "seen n=1") || strings.Contains(got, "\x1b") {
		t.Errorf("logged %q, want text without colours", got)
	}
}

func FuzzCut(f *testing.F) {
	f.Add("https://例え.example/mcp/notebook", 20)
	f.Add("a\u0301\u0301\u0301bc日本", 4)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		if got := cut(text, columns); columns > 0 && widthOf(got) > columns {
			t.Errorf("cut(%q, %d) = %q, which takes %d", text, columns, got, widthOf(got))
		}
	})
}
