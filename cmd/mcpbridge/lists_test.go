package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// ofLog are the colours of the log.
var ofLog = regexp.MustCompile("\x1b\\[(0|2|91|92|93)m")

// Lists fit a terminal of 80 columns, with the colours of the log; with -l, or elsewhere, they
// have their texts whole.
func TestListsFitTerminal(t *testing.T) {
	long := strings.Repeat("very-", 20) + "long"
	file := configFile(t, "servers:\n  notes: {builtin: notebook, tools: {describe: {edit_note: 'First "+long+"'}}}\n  docs: {url: 'https://docs.example.com/"+long+"/mcp'}\n")
	s := serve(t, nil, file)
	at := []string{"--admin", strings.TrimPrefix(s.Admin, "http://")}
	for _, tt := range []struct {
		args        []string
		want, whole string
	}{
		{[]string{"ls", "-c", file, "notes"}, "  edit_note ", long},
		{[]string{"call", "-c", file, "notes"}, "edit_note ", long},
		{[]string{"ls", "-c", file}, "notes  builtin notebook", long},
		{[]string{"check", file}, "SERVER  ENDPOINT", long},
		{append([]string{"top", "--once"}, at...), "SERVER  STATE", "subscriptions to"},
	} {
		shown := func(environ []string, more ...string) string {
			term := new(bridgetest.Terminal)
			screen := output.NewScreen(term, func() int { return 80 })
			p := process{args: append(append([]string{"mcpbridge"}, tt.args...), more...), environ: environ, stdout: screen, stderr: new(bridgetest.Log)}
			if err := p.run(t.Context()); err != nil {
				t.Fatalf("%q = %v", tt.args, err)
			}
			return strings.Join(term.Seen(), "\n")
		}
		got := shown(nil)
		for line := range strings.SplitSeq(ofLog.ReplaceAllString(got, ""), "\n") {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%q has a line of %d columns: %s", tt.args, utf8.RuneCountInString(line), line)
			}
		}
		if plain := ofLog.ReplaceAllString(got, ""); !strings.Contains(plain, tt.want) || strings.Contains(plain, "\x1b") || plain == got && tt.args[0] != "ls" {
			t.Errorf("%q shows %q, want %q in it, and colours", tt.args, got, tt.want)
		}
		if got := shown([]string{"NO_COLOR=1"}); strings.Contains(got, "\x1b") {
			t.Errorf("%q has colours with NO_COLOR: %q", tt.args, got)
		}
		if got := shown(nil, "-l"); !strings.Contains(got, tt.whole) {
			t.Errorf("%q -l shows %s, want %q in it", tt.args, got, tt.whole)
		}
		for _, more := range [][]string{nil, {"-l"}} {
			if got := runCommand(t.Context(), nil, append(tt.args, more...)...); got.code != 0 || !strings.Contains(got.out, tt.whole) || strings.Contains(got.out, "\x1b") {
				t.Errorf("%q %q prints %+v, want %q in it", tt.args, more, got, tt.whole)
			}
		}
	}
}
