package reload

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
)

// An Outcome says what became of one attempt. It contains no secret.
type Outcome struct {
	Time time.Time `json:"time"`
	Why  string    `json:"why"`            // who asked for it
	From string    `json:"from,omitempty"` // the address of whoever has asked over HTTP
	OK   bool      `json:"ok"`

	// Of one that failed: nothing has changed.
	Error string `json:"error,omitempty"` // all mistakes, a line each
	File  string `json:"file,omitempty"`  // of the first mistake
	Line  int    `json:"line,omitempty"`

	// Names of servers.
	Added   []string `json:"added,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Renewed []string `json:"renewed,omitempty"` // they go on, with other credentials
	// Keys are those whose values are others now.
	Keys []string `json:"keys,omitempty"`
	// NeedsRestart are the keys whose values count after a restart.
	NeedsRestart []string `json:"needs_restart,omitempty"`
}

// Failed returns the outcome of an attempt that has changed nothing.
func Failed(err error) Outcome {
	o := Outcome{Error: err.Error()}
	if mistakes := (*config.Error)(nil); errors.As(err, &mistakes) {
		o.File, o.Line = mistakes.Problems[0].At()
	}
	return o
}

// Record returns the line of the audit log for the attempt, which has taken as long as until
// now.
func (o *Outcome) Record() *audit.Record {
	r := &audit.Record{
		Time: o.Time, Method: audit.MethodReload, Kind: "configuration", Name: o.Why, Address: o.From, Changed: o.Keys,
		Decision: "allow", Outcome: "ok", Took: time.Since(o.Time),
	}
	if !o.OK {
		r.Outcome, r.Reason = "failed", o.Error
	}
	return r
}

// log writes what people have to know.
func (o *Outcome) log(l *slog.Logger) {
	args := []any{"reason", o.Why}
	if !o.OK {
		if o.Line > 0 {
			args = append(args, "at", o.File+":"+strconv.Itoa(o.Line))
		}
		l.Error("configuration can't be used; the one before stays in use", append(args, "err", o.Error)...)
		return
	}
	for _, part := range []struct {
		key   string
		names []string
	}{{"added", o.Added}, {"changed", o.Changed}, {"removed", o.Removed}, {"renewed", o.Renewed}} {
		if len(part.names) > 0 {
			args = append(args, part.key, part.names)
		}
	}
	l.Info("configuration was reloaded", args...)
	if len(o.NeedsRestart) > 0 {
		l.Warn("keys have other values that count after a restart", "keys", o.NeedsRestart)
	}
}
