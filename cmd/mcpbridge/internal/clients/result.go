package clients

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
)

// A Result is what became of the opening of one client at one server.
type Result struct {
	Client  string   `json:"client"` // its id
	Version string   `json:"version"`
	Date    string   `json:"date"`
	Source  []string `json:"source"`
	Note    string   `json:"note,omitempty"`

	Directly Outcome `json:"directly"`
	Bridged  Outcome `json:"bridged"`
	// Worse means that mcpbridge refuses what the server takes.
	Worse bool `json:"worse"`
}

// NewResult compares two outcomes of one opening.
func NewResult(c *Client, directly, bridged Outcome) Result {
	r := Result{Client: c.ID, Version: c.Version, Date: c.Date, Source: c.Source, Note: c.Note, Directly: directly, Bridged: bridged}
	r.Worse = directly.Connects && !bridged.Connects
	if directly.Connects && bridged.Connects {
		for _, b := range bridged.Beside {
			r.Worse = r.Worse || !directly.refuses(b.Message)
		}
	}
	return r
}

// refuses reports whether a message was refused that did not end the opening.
func (o *Outcome) refuses(message string) bool {
	for _, r := range o.Beside {
		if r.Message == message {
			return true
		}
	}
	return false
}

// String says what became of it, for people.
func (o *Outcome) String() string {
	if !o.Connects {
		return o.Refused.String()
	}
	text := "connects"
	if o.Revision != "" {
		text += " in " + o.Revision
	}
	for _, r := range o.Beside {
		text += ", but " + r.String()
	}
	return text
}

// shownWhy limits how much of a reason is printed, in bytes.
const shownWhy = 160

// brief is String without the reasons.
func (o *Outcome) brief() string {
	if !o.Connects {
		return o.Refused.brief()
	}
	short := Outcome{Connects: true, Revision: o.Revision}
	text := short.String()
	for _, r := range o.Beside {
		text += ", but " + r.brief()
	}
	return text
}

// brief says what was refused with which codes.
func (r *Refusal) brief() string {
	text := r.Message + " is refused:"
	if r.Status != 0 {
		text += fmt.Sprintf(" %d", r.Status)
	}
	if r.Code != 0 {
		text += fmt.Sprintf(" (%d)", r.Code)
	}
	return strings.TrimSuffix(text, ":")
}

// String says what was refused and why.
func (r *Refusal) String() string {
	text := r.brief()
	why := strings.Join(strings.Fields(r.Why), " ")
	if len(why) > shownWhy {
		why = strings.ToValidUTF8(why[:shownWhy], "") + "…"
	}
	return text + " " + why
}

// printAll prints what became of one client, or a table. piped says that the server is a
// command.
func printAll(w io.Writer, results []Result, piped bool) error {
	if piped {
		if _, err := output.Printf(w, "A command gets no headers: directly, the bodies alone were sent to it, and through mcpbridge all over HTTP.\n"); err != nil {
			return err
		}
	}
	if len(results) == 1 {
		return printOne(w, &results[0])
	}
	return printTable(w, results)
}

// ErrWorse is that mcpbridge refuses something that the server takes.
var ErrWorse = errors.New("mcpbridge refuses what the server takes; please report it, with the lines above")

// Tell prints what became of clients, for people or as JSON, and returns [ErrWorse] if that is
// so. piped says that the server is a command.
func Tell(w io.Writer, results []Result, asJSON, piped bool) error {
	var err error
	if asJSON {
		err = output.JSON(w, results)
	} else {
		err = printAll(w, results, piped)
	}
	if err == nil && worse(results) {
		err = ErrWorse
	}
	return err
}

// worse reports whether mcpbridge refuses anything that the server takes.
func worse(results []Result) bool {
	return slices.ContainsFunc(results, func(r Result) bool { return r.Worse })
}

// printOne prints what became of one client.
func printOne(w io.Writer, r *Result) error {
	_, err := output.Printf(w, "%s %s, as of %s: %s\n", r.Client, r.Version, r.Date, strings.Join(r.Source, ", "))
	if err == nil && r.Note != "" {
		_, err = output.Printf(w, "  %s\n", r.Note)
	}
	if err == nil {
		_, err = output.Printf(w, "directly           %s\nthrough mcpbridge  %s\n", r.Directly.String(), r.Bridged.String())
	}
	return err
}

// printTable prints a row for each client, and the reasons where mcpbridge is to blame.
func printTable(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := output.Printf(t, "client\tversion\tas of\tdirectly\tthrough mcpbridge\n"); err != nil {
		return err
	}
	for i := range results {
		r := &results[i]
		bridged := r.Bridged.brief()
		if bridged == r.Directly.brief() {
			bridged = "the same"
		}
		if _, err := output.Printf(t, "%s\t%s\t%s\t%s\t%s\n", r.Client, r.Version, r.Date, r.Directly.brief(), bridged); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range results {
		if r := &results[i]; r.Worse {
			if _, err := output.Printf(w, "%s, through mcpbridge alone: %s\n", r.Client, r.Bridged.String()); err != nil {
				return err
			}
		}
	}
	return nil
}
