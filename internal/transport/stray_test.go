package transport

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The first output that is no message is told of once: at once if a message shows that the child
// is a server, within a second if it goes on, and with its end as the log of children has it.
func TestU04FirstStrayLine(t *testing.T) {
	const warned, told = "level=WARN msg=\"" + MsgStray + "\" line=hello bytes=5\n", "level=INFO msg=\"" + MsgStray + "\" line=hello bytes=5\n"
	const mute = "level=WARN msg=\"" + MsgMute + "\" line=hello for=10s\n"
	for _, tt := range []struct {
		name string
		do   func(*strayOutput)
		want string
	}{
		{"it is a server", func(s *strayOutput) { s.begin("hello", 5, false); s.spoke() }, "0s " + warned},
		{"it was one before", func(s *strayOutput) { s.begin("hello", 5, true) }, "0s " + warned},
		{"it ends", func(s *strayOutput) { s.begin("hello", 5, false); s.end() }, "0s " + told},
		{"it goes on", func(s *strayOutput) { s.begin("hello", 5, false); time.Sleep(time.Minute) }, "1s " + warned + "10s " + mute},
		{"it is slow", func(s *strayOutput) { s.begin("hello", 5, false); time.Sleep(9 * time.Second); s.spoke() }, "1s " + warned},
		{"it ends after a while", func(s *strayOutput) { s.begin("hello", 5, false); time.Sleep(9 * time.Second) }, "1s " + warned},
		{"nothing", func(*strayOutput) {}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				log := slog.New(slog.NewTextHandler(&stamped{&out, time.Now()}, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				}}))
				s := &strayOutput{log: log, level: func() slog.Level { return slog.LevelInfo }}
				tt.do(s)
				s.end()
				time.Sleep(time.Minute) // there is no timer left
				if got := out.String(); got != tt.want {
					t.Errorf("it logged\n%swant\n%s", got, tt.want)
				}
			})
		})
	}
}

// A stamped writes lines with the time since its beginning.
type stamped struct {
	out   *bytes.Buffer
	begun time.Time
}

func (s *stamped) Write(line []byte) (int, error) {
	fmt.Fprintf(s.out, "%v %s", time.Since(s.begun).Truncate(time.Second), line)
	return len(line), nil
}

// A banner is warned of even while the child is probed, the lines after it are not.
func TestU04BannerOfAServer(t *testing.T) {
	var out bytes.Buffer
	c := say(t, "banner\nanother\n{\"id\":1}\n", CommandOptions{Logger: slog.New(slog.NewTextHandler(&out, nil)), Quiet: true})
	mustRead(t, c)
	c.Close()
	if got := out.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "line=banner") || strings.Contains(got, "another") {
		t.Errorf("log = %q, want a warning of the banner alone", got)
	}
}
