// Package report says what was found out about a server, and what a configuration serves.
//
// A [Report] is about one server: what it speaks, what it has, and what clients of the other
// era get of it, unchanged, in another form or not at all, with the rule of docs/rules.md for each:
// tables say so. A [Summary] is about a configuration, fit to be shown. The package asks
// nobody.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Report is what probe prints. Durations are in seconds.
type Report struct {
	Summary      string          `json:"summary"`
	Target       string          `json:"target"` // credentials masked
	Transport    string          `json:"transport"`
	Era          string          `json:"era"` // legacy, modern or unknown
	Reason       string          `json:"reason"`
	Advice       string          `json:"advice,omitempty"`    // what to do, if the era is unknown
	Revisions    []spec.Revision `json:"revisions,omitempty"` // as the server named them
	Server       *Server         `json:"server,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"` // as the server wrote them
	Instructions string          `json:"instructions,omitempty"`
	Seconds      float64         `json:"seconds"` // from the first question to the verdict
	Steps        []Step          `json:"steps"`
	Lists        map[string]int  `json:"lists,omitempty"` // how many, by method
	// Crossings are for clients of the other era than the server's; absent where
	// nothing is known of its features.
	Crossings []Feature `json:"crossings,omitempty"`
	// Extensions are for clients of either era; absent where the server declares none.
	Extensions []Extension `json:"extensions,omitempty"`
	// Quirks are what the server did against the protocol while it was asked.
	Quirks []Quirk `json:"quirks,omitempty"`
}

// A Quirk is a deviation from the protocol that mcpbridge mends or tolerates.
type Quirk struct {
	Name   string `json:"name"`
	Rule   string `json:"rule"`
	Seen   string `json:"seen"`
	Done   string `json:"done"`
	Breaks string `json:"breaks"` // and where the specification says so
	Count  int64  `json:"count"`
}

// A Server is how a server names itself.
type Server struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
}

// A Step is one question to the server, and what came back.
type Step struct {
	Sent    string  `json:"sent"`
	Answer  string  `json:"answer"`
	Means   string  `json:"means,omitempty"`
	Seconds float64 `json:"seconds"`
}

// New returns the report about a server of the configuration, which upstream reaches.
func New(upstream *server.Server, c *config.Server, v mcp.Verdict) *Report {
	r := &Report{
		Target: c.Target(), Transport: transportOf(c, &v),
		Era: v.Era.String(), Reason: v.Reason, Revisions: v.Revisions, Seconds: v.Took.Seconds(),
	}
	for _, s := range v.Steps {
		r.Steps = append(r.Steps, Step{s.Sent, s.Answer, s.Means, s.Took.Seconds()})
	}
	for _, m := range upstream.Quirks(&v) {
		if d := m.Quirk.Describe(); d.Side == quirks.Server {
			r.Quirks = append(r.Quirks, Quirk{d.Name, d.ID, plain(d.Seen), plain(d.Done), plain(d.Breaks + " (" + d.Section + ")"), m.Count})
		}
	}
	if v.Era == spec.Unknown {
		r.Summary = "Does not work: it " + upstream.Trouble(&v) + "."
		r.Advice = upstream.Advice(&v)
	}
	if v.Description == nil {
		return r
	}
	r.Capabilities = v.Description.Capabilities
	r.Instructions = wire.Unquote(v.Description.Instructions)
	if info := v.Description.ServerInfo; info != nil {
		str := func(name string) string { s, _ := wire.GetString(info, name); return s }
		r.Server = &Server{str("name"), str("title"), str("version")}
	}
	r.Lists = make(map[string]int)
	for _, l := range v.Lists {
		r.Lists[l.Method] = len(l.Items)
	}
	s := &probed{Verdict: v, HTTP: !upstream.OnConnection() && !v.Older, Command: c.Command != "", Hidden: c.Hidden()}
	r.Crossings, r.Extensions = s.features(), s.extensions()
	r.summarize()
	return r
}

// plain returns a text of Markdown as a terminal shows it.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// summarize says in one line what works, and how many limits there are.
func (r *Report) summarize() {
	limits, others := 0, 0
	for _, c := range r.Crossings {
		switch c.Outcome {
		case Refused:
			limits++
		case Changes:
			others++
		}
	}
	own, other := "2025-11-25 and earlier", "2026-07-28"
	if r.Era == spec.Modern.String() {
		own, other = other, own
	}
	r.Summary = fmt.Sprintf("Works: clients of %s get all of it; for clients of %s %s, and %s another form.",
		own, other, thereAre(limits), hasForm(others))
}

func thereAre(limits int) string {
	if limits == 1 {
		return "there is 1 limit"
	}
	return fmt.Sprintf("there are %d limits", limits)
}

func hasForm(n int) string {
	if n == 1 {
		return "1 feature has"
	}
	return fmt.Sprintf("%d features have", n)
}

// transportOf names the transport that a server is reached over.
func transportOf(s *config.Server, v *mcp.Verdict) string {
	switch {
	case s.URL == "":
		return "stdio"
	case s.OverWebSocket():
		return "WebSocket"
	case v.Older:
		return "HTTP+SSE"
	}
	return "Streamable HTTP"
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	_, _ = output.Printf(&b, "%s\n\n", r.Summary)
	r.printHead(&b)
	r.printSteps(&b)
	r.printCrossings(&b)
	r.printExtensions(&b)
	r.printQuirks(&b)
	_, err := output.Printf(w, "%s", output.Block(b.String()))
	return err
}

func (r *Report) printHead(b *strings.Builder) {
	tw := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = output.Printf(tw, name+"\t"+format+"\n", args...) // it ends up in memory
	}
	row("server", "%s", r.Target)
	if s := r.Server; s != nil {
		row("name", "%s", strings.TrimSpace(cmp.Or(s.Title, s.Name)+" "+s.Version))
	}
	row("transport", "%s", r.Transport)
	row("speaks", "%s: %s", r.speaks(), r.Reason)
	if len(r.Revisions) > 0 {
		row("revisions", "%s", output.Join(r.Revisions))
	}
	if r.Capabilities != nil {
		row("capabilities", "%s", cmp.Or(capabilityText(r.Capabilities), "none"))
	}
	row("found out in", "%s", brief(r.Seconds))
	_ = tw.Flush() // into memory
}

// speaks says what the server speaks.
func (r *Report) speaks() string {
	switch r.Era {
	case spec.Legacy.String():
		return spec.Legacy.Speaks()
	case spec.Modern.String():
		return spec.Modern.Speaks()
	}
	return "unknown"
}

// capabilityText names capabilities, each with what it says of itself.
func capabilityText(caps []byte) string {
	var names []string
	for k, v := range wire.Members(caps) {
		name := k.String()
		var more []string
		for m, on := range wire.Members(v) {
			if string(on) != "false" {
				more = append(more, m.String())
			}
		}
		if len(more) > 0 {
			name += " (" + strings.Join(more, ", ") + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func (r *Report) printSteps(b *strings.Builder) {
	if len(r.Steps) == 0 {
		return
	}
	b.WriteString("\nHow it answered\n")
	tw := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	for _, s := range r.Steps {
		text := s.Answer
		if s.Means != "" {
			text += " → " + s.Means
		}
		_, _ = output.Printf(tw, "  %s\t%s\t%s\n", s.Sent, brief(s.Seconds), text) // into memory
	}
	_ = tw.Flush() // into memory
}

// maxItems is how many names a row has for people; JSON has all.
const maxItems = 6

func (r *Report) printCrossings(b *strings.Builder) {
	if r.Crossings == nil {
		return
	}
	clients := "2026-07-28"
	if r.Era == spec.Modern.String() {
		clients = "2025-11-25 and before"
	}
	_, _ = output.Printf(b, "\nWhat clients of %s get of it, by mcpbridge\n", clients)
	for _, c := range r.Crossings {
		_, _ = output.Printf(b, "  %s  %s%s\n           %s (%s)\n", c.Outcome, c.Feature, itemText(c.Items), c.Why, c.Rule)
	}
}

func itemText(items []string) string {
	if len(items) == 0 {
		return ""
	}
	text := strings.Join(slices.Clone(items)[:min(len(items), maxItems)], ", ")
	if more := len(items) - maxItems; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return ": " + text
}

// brief writes a time as exactly as people care.
func brief(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

func (r *Report) printExtensions(b *strings.Builder) {
	if len(r.Extensions) == 0 {
		return
	}
	b.WriteString("\nWhat becomes of its extensions\n")
	for _, e := range r.Extensions {
		_, _ = output.Printf(b, "  %s\n", strings.TrimSpace(e.Name+" "+string(e.Settings)))
		printTreatment(b, &e.Modern, "for clients of 2026-07-28")
		printTreatment(b, &e.Legacy, "for clients of 2025-11-25 and before")
	}
}

func (r *Report) printQuirks(b *strings.Builder) {
	if len(r.Quirks) == 0 {
		return
	}
	b.WriteString("\nWhat it does against the protocol, and mcpbridge tolerates\n")
	for _, q := range r.Quirks {
		_, _ = output.Printf(b, "  %s  %s\n           the protocol: %s\n           what is done: %s (%s)\n", q.Name, q.Seen, q.Breaks, q.Done, q.Rule)
	}
}

func printTreatment(b *strings.Builder, t *Treatment, whose string) {
	_, _ = output.Printf(b, "    %s  %s\n             %s (%s)\n", t.Outcome, whose, t.Why, t.Rule)
}
