package output

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A server must not be able to drive the terminal of whoever looks at it.
func TestEscape(t *testing.T) {
	in := "ok\tné\n\x1b]0;x\x07\r\x7f\u009b2K\u202eend\x9b\u2028 \u200b👩\u200d🔧"
	const rest = `\x1b]0;x\x07\x0d\u007f\u009b2K\u202eend\x9b\u2028 \u200b` + "👩\u200d🔧"
	if got, want := EscapeBlock(in), "ok\tné\n"+rest; got != want {
		t.Errorf("EscapeBlock(%q) = %q, want %q", in, got, want)
	}
	if got, want := Escape(in), `ok\x09né\x0a`+rest; got != want {
		t.Errorf("Escape(%q) = %q, want %q", in, got, want)
	}
	if got := Escape(Escape(in)); got != Escape(in) {
		t.Errorf("escaped twice: %q", got)
	}
}

// Every kind of argument is escaped, and formatted as fmt does; what is none stays.
func TestPrintf(t *testing.T) {
	var b bytes.Buffer
	_, err := Printf(&b, "a\tb %-4s|%3d|%q|%v|%s|%[1]s\n", "\x1b", 7, "\x1b", errors.New("\x1b\n"), Block("x\n\x1b"))
	if got, want := b.String(), "a\tb \\x1b   |  7|\"\\x1b\"|\\x1b\\x0a|x\n\\x1b|\\x1b\n"; err != nil || got != want {
		t.Errorf("Printf wrote %q, %v, want %q", got, err, want)
	}
}

// Logs for people escape what others say, wherever it stands; JSON in a file stays.
func TestLogTakesTerminalControl(t *testing.T) {
	const bad = "\x1b[2J \u009b31m\u202e"
	write := func(log *slog.Logger) {
		log.With("tool", bad).WithGroup("g").Info(bad, "name", bad, "err", errors.New(bad), "list", []string{bad})
	}
	for _, format := range []string{"auto", "text", "json"} {
		term := new(bridgetest.Terminal)
		write(NewLog(NewScreen(term, func() int { return 40 }), config.Log{Level: "info", Format: format}, nil))
		for _, line := range term.Seen() {
			for _, color := range []string{"\x1b[2m", "\x1b[92m", "\x1b[91m", "\x1b[0m"} {
				line = strings.ReplaceAll(line, color, "")
			}
			if strings.ContainsAny(line, "\x1b\u009b\u202e") || strings.Count(line, `x1b`)+strings.Count(line, `u001b`) != 5 {
				t.Errorf("%s at a terminal: %q", format, line)
			}
		}
	}
	var file bridgetest.Log
	write(NewLog(&file, config.Log{Level: "info", Format: "text"}, nil))
	if strings.ContainsAny(file.String(), "\x1b\u009b\u202e") {
		t.Errorf("text in a file: %q", file.String())
	}
	file = bridgetest.Log{}
	write(NewLog(&file, config.Log{Level: "info", Format: "json"}, nil))
	if !strings.Contains(file.String(), "\u202e") {
		t.Errorf("JSON in a file was changed: %q", file.String())
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[0m\u009b\u202e\xff\n\t")
	f.Fuzz(func(t *testing.T, text string) {
		for _, got := range []string{Escape(text), strings.NewReplacer("\n", "", "\t", "").Replace(EscapeBlock(text))} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f || steers(r) }) {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	})
}
