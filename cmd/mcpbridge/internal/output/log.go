package output

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/lmittmann/tint"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/linebuffer"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// What a line of the log holds of one text at most, in bytes.
const (
	mostText = 2 << 10
	// MostLogName is the bound of what names things.
	MostLogName = 256
)

// naming are the keys of what names things.
var naming = []string{"method", "upstream", "downstream", "session", "name", "tool", "client", "principal", "topic", "uri", "id", "host"}

// NewLog logs to w: text with colours for people at a terminal, JSON for
// whatever else reads. Secrets are hidden and long texts cut.
func NewLog(w io.Writer, c config.Log, secrets *redact.Redactor) *slog.Logger {
	return NewLogAt(LogLevel(c.Level), w, c, secrets)
}

// NewLogAt is NewLog with a level that may change.
func NewLogAt(level slog.Leveler, w io.Writer, c config.Log, secrets *redact.Redactor) *slog.Logger {
	w = To(w)
	screen, tty := w.(*Screen)
	l := logged{secrets}
	if c.Format == "json" || c.Format == "auto" && !tty {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			return inSeconds(l.attr(groups, a))
		}}))
	}
	if tty {
		w = colored{screen}
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !tty || screen.plain, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		return escaped(l.attr(groups, a))
	}}))
}

// NewGatheredLog is NewLogAt for a program that logs each request. A line in a file or a
// pipe takes a system call: there lines wait for a moment, until done is called. At a
// terminal somebody reads along.
func NewGatheredLog(level slog.Leveler, w io.Writer, c config.Log, secrets *redact.Redactor) (log *slog.Logger, done func()) {
	if !Gathers(w) {
		return NewLogAt(level, w, c, secrets), func() {}
	}
	lines := linebuffer.New(w)
	log = NewLogAt(level, lines, c, secrets)
	return slog.New(lines.Handler(log.Handler())), func() { _ = lines.Close() } // there is nobody to tell
}

// Gathers reports whether lines to w are to be written together.
func Gathers(w io.Writer) bool {
	_, isFile := w.(*os.File)
	return isFile && !IsTerminal(w)
}

// inSeconds writes durations as what collectors expect; slog's own are bare
// nanoseconds.
func inSeconds(a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// escaped escapes a text for people; JSON has escapes of its own.
func escaped(a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		if text := a.Value.String(); steering(text, "") >= 0 {
			a.Value = slog.StringValue(Escape(text))
		}
	case slog.KindAny:
		if text := fmt.Sprint(a.Value.Any()); steering(text, "") >= 0 {
			a.Value = slog.StringValue(Escape(text))
		}
	}
	return a
}

// logged makes of texts what the log may have of them.
type logged struct{ secrets *redact.Redactor }

// attr hides the secrets in an attribute, the message included, and cuts it.
func (l logged) attr(groups []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		text := a.Value.String()
		if short := l.text(a.Key, text); len(short) != len(text) || short != text {
			a.Value = slog.StringValue(short)
		}
	case slog.KindAny:
		if len(groups) > 0 || a.Key != slog.LevelKey {
			a.Value = l.any(a.Key, a.Value)
		}
	}
	return a
}

// any leaves a value as it is if nothing has to be left out, so that it is written as
// the handler does.
func (l logged) any(key string, v slog.Value) slog.Value {
	text := fmt.Sprint(v.Any())
	if short := l.text(key, text); short != text {
		return slog.StringValue(short)
	}
	return v
}

// text hides secrets before it cuts: what is left of one could not be found.
func (l logged) text(key, text string) string {
	most := mostText
	if len(text) > MostLogName && slices.Contains(naming, key) {
		most = MostLogName
	}
	if len(text) > 2*most {
		text = redact.Cut(text, 2*most)
	}
	text = l.secrets.String(text)
	if len(text) > most+len("…") { // what was cut where it came from has its mark
		text = redact.Cut(text, most)
	}
	return text
}

// LogLevel reads a level that the configuration has checked.
func LogLevel(name string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return slog.LevelInfo
	}
	return level
}
