package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/release"
)

const firstDay = "../../docs/first-day.md"

// A day is a transcript while it is made.
type day struct {
	t               *testing.T
	text            strings.Builder
	environ         []string
	endpoint, admin string // of serve
}

func (d *day) say(text string) { fmt.Fprintf(&d.text, "%s\n\n", text) }

// run runs a command line that a person types, and shows it with all that it prints.
func (d *day) run(lines ...string) {
	d.text.WriteString("```console\n")
	for _, line := range lines {
		got := runCommand(d.t.Context(), d.environ, words(strings.ReplaceAll(line, "127.0.0.1:2526", d.endpoint))[1:]...)
		fmt.Fprintf(&d.text, "$ %s\n%s%s", line, d.masked(got.out), d.masked(got.err))
		if got.code != 0 {
			fmt.Fprintf(&d.text, "$ echo $?\n%d\n", got.code)
		}
	}
	d.text.WriteString("```\n\n")
}

// serve serves until the end of the test, and shows what is printed and the first line
// that is logged.
func (d *day) serve() (log *bridgetest.Log) {
	out, log := &bridgetest.Log{}, &bridgetest.Log{}
	p := process{args: []string{"mcpbridge", "serve"}, stdout: out, stderr: log}
	p.environ = append([]string{"MCPBRIDGE_LISTEN=127.0.0.1:0", "MCPBRIDGE_ADMIN=127.0.0.1:0", "MCPBRIDGE_LOG__FORMAT=text"}, d.environ...)
	ctx, cancel := context.WithCancel(d.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }() // ends with the test
	d.t.Cleanup(func() { cancel(); <-ended })
	bridgetest.Eventually(d.t, "serving", func() bool {
		return strings.Contains(out.String(), "In a third") && strings.Contains(log.String(), "\n")
	})
	addresses := anyPort.FindAllString(out.String(), -1)
	d.endpoint, d.admin = addresses[0], addresses[1]
	fmt.Fprintf(&d.text, "```console\n$ mcpbridge serve\n%s%s\n```\n\n", d.masked(out.String()), firstLine(d.masked(log.String())))
	return log
}

var clockTime = regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`)

// masked is text as it is on any machine.
func (d *day) masked(text string) string {
	if d.endpoint != "" {
		text = strings.NewReplacer(d.endpoint, "127.0.0.1:2526", d.admin, "127.0.0.1:2527").Replace(text)
	}
	return clockTime.ReplaceAllString(strings.ReplaceAll(text, release.Version(), "v1.0.0"), "14:02:11")
}

// words splits a line as a shell does that knows of double quotes alone.
func words(line string) (out []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			out[len(out)-1] += part
			continue
		}
		out = append(out, strings.Fields(part)...)
		if strings.HasSuffix(part, " ") {
			out = append(out, "")
		}
	}
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// What a person who never heard of mcpbridge sees in the first ten minutes. -update
// writes the transcript.
func TestFirstDay(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the transcript's server is a script")
	}
	document, err := filepath.Abs(firstDay)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"notes-server": "#!/bin/sh\nexec '" + os.Args[0] + "' notebook-on-stdio\n",
		"config.yaml":  "servers:\n  notes: {command: ./notes-server}\n  files: {command: nosuch}\n",
		"tabs.yaml":    "servers:\n\tnotes:\n\t\tcommand: ./notes-server\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := &day{t: t, environ: []string{"GORACE=atexit_sleep_ms=0", "MCPBRIDGE_REMEMBER=false"}}
	d.write()
	got := d.text.String()
	if *update {
		if err := os.WriteFile(document, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := steady(got), steady(string(want)); got != want {
		t.Errorf("docs/first-day.md is not what happens; go test ./cmd/mcpbridge -run FirstDay -update writes it anew:\n%s\nwant\n%s", got, want)
	}
}

func (d *day) write() {
	d.say("# The first day")
	d.say("What a person sees who has a command or a URL, and ten minutes. A test runs all of this:\n`go test ./cmd/mcpbridge -run FirstDay -update` writes it anew.")
	d.say("## Get it\n\nNothing is published yet. In a clone, with Go 1.26:")
	d.say("```sh\ngo install ./cmd/mcpbridge\nexport PATH=\"$PATH:$(go env GOPATH)/bin\"\n```")
	d.say("`make build` leaves it in `bin/mcpbridge` instead. `go run ./cmd/mcpbridge` takes the place of `mcpbridge` in everything below, too. The first of them\ncompiles everything, without a word: 100 s of user time, as `time` counts it.")
	d.say("## Look at it\n\nWithout anything, a small notebook is served.")
	log := d.serve()
	d.say("In a second terminal:")
	const notebook = "http://127.0.0.1:2526/mcp/notebook"
	d.run("mcpbridge ls "+notebook, `mcpbridge call `+notebook+` edit_note name=todo text="buy oat milk"`, "mcpbridge read "+notebook+" note://todo")
	line := regexp.MustCompile(`(?m)^.* name=edit_note .*$`)
	bridgetest.Eventually(d.t, "logged", func() bool { return line.MatchString(log.String()) })
	d.say("The first terminal has a line for each request:")
	fmt.Fprintf(&d.text, "```console\n%s\n```\n\n", d.masked(line.FindString(log.String())))
	d.say("The page that `serve` names (see what passes) shows the same in a browser, with what was sent; `mcpbridge tail` follows it in another terminal, and `mcpbridge top` shows servers and clients.")
	d.say("A tool that isn't there, a note that isn't there:")
	d.run("mcpbridge call "+notebook+" edit_nots", "mcpbridge read "+notebook+" note://none")
	d.say("## Your own server\n\nIt is a command, after `--`. What is it, and what do newer clients get of it?")
	d.run("mcpbridge probe -- ./notes-server")
	d.say("Try it once, without serving it:")
	d.run("mcpbridge call edit_note name=todo text=x -- ./notes-server")
	d.say("## What goes wrong first")
	d.run("mcpbridge serve -- nosuch", `mcpbridge serve -- "npx -y foo"`, "mcpbridge serve npx -y foo", "mcpbridge call -- echo hello", "mcpbridge call http://127.0.0.1:1/mcp", "mcpbridge serve --listen :8080")
	d.say("## Several servers\n\nA file has them all:")
	fmt.Fprint(&d.text, "```yaml\nservers:\n  notes: {command: ./notes-server}\n  files: {command: nosuch}\n```\n\n")
	d.run("mcpbridge check config.yaml", "mcpbridge check tabs.yaml", "mcpbridge ls config.yaml", "mcpbridge read -c config.yaml notes note://todo", "mcpbridge ls -c config.yaml files", "mcpbridge ls -c config.yaml note")
	d.say("`mcpbridge serve config.yaml` serves them, each at `http://127.0.0.1:2526/mcp/NAME`. One that can't start is tried again while the others are served.")
}
