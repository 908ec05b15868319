package report

import (
	"errors"
	"io"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// A Problem is a mistake or a warning of a configuration.
type Problem struct {
	File   string `json:"file,omitempty"` // empty for one that is in no file
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Where  string `json:"where,omitempty"` // a variable, a flag or the command line; empty for a file
	Key    string `json:"key,omitempty"`   // empty for one of the whole file
	What   string `json:"what"`
	Next   string `json:"next,omitempty"` // what to do
}

// Mistakes are those of a configuration that can't be used.
type Mistakes struct {
	Mistakes []Problem `json:"mistakes"`
	Warnings []Problem `json:"warnings,omitempty"`
}

// Problems returns problems as they are shown.
func Problems(from []config.Problem) (all []Problem) {
	for _, p := range from {
		out := Problem{Where: p.Where, Key: p.Key, Column: p.Column()}
		if out.File, out.Line = p.At(); out.Line > 0 {
			out.Where = ""
		}
		out.What, out.Next = p.Parts()
		all = append(all, out)
	}
	return all
}

// PrintMistakes prints the error of loading the file at path as JSON, and what it was warned of.
func PrintMistakes(w io.Writer, path string, err error, warnings []config.Problem) error {
	m := Mistakes{Warnings: Problems(warnings)}
	if mistakes := (*config.Error)(nil); errors.As(err, &mistakes) {
		m.Mistakes = Problems(mistakes.Problems)
	} else {
		what, next := config.Parts(err.Error())
		m.Mistakes = []Problem{{File: path, What: what, Next: next}}
	}
	return output.JSON(w, m)
}
