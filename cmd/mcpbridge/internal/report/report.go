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
	"regexp"
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
	Tools        []string        `json:"tools,omitempty"` // their names
	// Crossings are for clients of the other era than the server's; absent where
	// nothing is known of its features.
	Crossings []Feature `json:"crossings,omitempty"`
	// Extensions are for clients of either era; absent where the server declares none.
	Extensions []Extension `json:"extensions,omitempty"`
	// Quirks are what the server did against the protocol while it was asked.
	Quirks []Quirk `json:"quirks,omitempty"`

	failed bool // a list could not be read
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
		r.failed = r.failed || l.Err != nil
		if l.Method == spec.MethodToolsList {
			r.Tools = toolNames(l.Items)
		}
	}
	s := &probed{Verdict: v, HTTP: !upstream.OnConnection() && !v.Older, Command: c.Command != "", Settings: c.Server}
	r.Crossings, r.Extensions = s.features(), s.extensions()
	r.summarize()
	return r
}

func toolNames(items []json.RawMessage) (names []string) {
	for _, item := range items {
		name, _ := wire.GetString(item, "name")
		names = append(names, name)
	}
	return names
}

// plain returns a text of Markdown as a terminal shows it.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// summarize says in one line what works, and how many limits there are of what the server
// declares.
func (r *Report) summarize() {
	var limits, others int
	for _, c := range r.Crossings {
		switch {
		case c.IfUsed:
		case c.Outcome == Refused:
			limits++
		case c.Outcome == Changes:
			others++
		}
	}
	own, other := "2025-11-25 and earlier", "2026-07-28"
	if r.Era == spec.Modern.String() {
		own, other = other, own
	}
	var less []string
	if limits > 0 {
		less = append(less, thereAre(limits))
	}
	if others > 0 {
		less = append(less, hasForm(others))
	}
	if len(less) == 0 {
		r.Summary = fmt.Sprintf("Works: clients of %s get all of it, and so do clients of %s.", own, other)
		return
	}
	r.Summary = fmt.Sprintf("Works: clients of %s get all of it; for clients of %s %s.", own, other, strings.Join(less, ", and "))
}

func thereAre(limits int) string {
	if limits == 1 {
		return "there is 1 limit"
	}
	return fmt.Sprintf("there are %d limits", limits)
}

func hasForm(n int) string {
	if n == 1 {
		return "1 feature has another form"
	}
	return fmt.Sprintf("%d features have another form", n)
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

// Print writes the report for people: the tools, what the server declares and clients of the
// other era get otherwise or not at all, and in one line what it does not offer. verbose adds
// how it answered, what they get unchanged, what it may do without declaring it, and the rules.
func (r *Report) Print(w io.Writer, verbose bool) error {
	b := printing{verbose: verbose}
	b.line("%s\n\n", r.Summary)
	r.printHead(&b)
	if verbose || r.failed || r.Capabilities == nil {
		r.printSteps(&b)
	}
	r.printCrossings(&b)
	r.printNotOffered(&b)
	r.printExtensions(&b)
	r.printQuirks(&b)
	if !verbose && r.Crossings != nil {
		b.line("\n--verbose shows how it answered, and everything that clients get of it.\n")
	}
	_, err := output.Printf(w, "%s", output.Block(b.String()))
	return err
}

// A printing is a report while it is printed.
type printing struct {
	strings.Builder
	verbose bool
}

func (b *printing) line(format string, args ...any) {
	_, _ = output.Printf(b, format, args...) // it ends up in memory
}

// anyRule is how texts name a rule of docs/rules.md.
var anyRule = regexp.MustCompile(` \([A-Z0-9]+-\d+\)`)

// why is a reason with its rules, for who wants to know those.
func (b *printing) why(text, rule string) string {
	if !b.verbose {
		return anyRule.ReplaceAllString(text, "")
	}
	return text + " (" + rule + ")"
}

func (r *Report) printHead(b *printing) {
	tw := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = output.Printf(tw, name+"\t"+format+"\n", args...) // it ends up in memory
	}
	if n := r.Lists[spec.MethodToolsList]; n > 0 {
		row("tools", "%d: %s", n, strings.TrimPrefix(itemText(r.Tools), ": "))
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

func (r *Report) printSteps(b *printing) {
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
const maxItems = 12

func (r *Report) printCrossings(b *printing) {
	clients, heading := "2026-07-28", "\nWhat is different for clients of %s\n"
	if r.Era == spec.Modern.String() {
		clients = "2025-11-25 and before"
	}
	if b.verbose {
		heading = "\nWhat clients of %s get of it, by mcpbridge\n"
	}
	for _, c := range r.Crossings {
		if c.Outcome == NotOffered || !b.verbose && (c.Outcome == Crosses || c.IfUsed) {
			continue
		}
		if heading != "" {
			b.line(heading, clients)
			heading = ""
		}
		b.line("  %s  %s%s\n           %s\n", c.Outcome, c.Feature, itemText(c.Items), b.why(c.Why, c.Rule))
	}
}

// printNotOffered names what the server has not.
func (r *Report) printNotOffered(b *printing) {
	var names []string
	for _, c := range r.Crossings {
		if c.Outcome == NotOffered {
			names = append(names, c.Feature)
		}
	}
	if len(names) > 0 {
		b.line("\nnot offered: %s\n", strings.Join(names, ", "))
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

func (r *Report) printExtensions(b *printing) {
	if len(r.Extensions) == 0 {
		return
	}
	b.WriteString("\nWhat becomes of its extensions\n")
	for _, e := range r.Extensions {
		if !b.verbose && e.Modern.Outcome == Crosses && e.Legacy.Outcome == Crosses {
			b.line("  %s: clients get it as it is\n", strings.TrimSpace(e.Name+" "+string(e.Settings)))
			continue
		}
		b.line("  %s\n", strings.TrimSpace(e.Name+" "+string(e.Settings)))
		printTreatment(b, &e.Modern, "for clients of 2026-07-28")
		printTreatment(b, &e.Legacy, "for clients of 2025-11-25 and before")
	}
}

func (r *Report) printQuirks(b *printing) {
	if len(r.Quirks) == 0 {
		return
	}
	b.WriteString("\nWhat it does against the protocol, and mcpbridge tolerates\n")
	for _, q := range r.Quirks {
		b.line("  %s  %s\n           the protocol: %s\n           what is done: %s\n", q.Name, q.Seen, q.Breaks, b.why(q.Done, q.Rule))
	}
}

func printTreatment(b *printing, t *Treatment, whose string) {
	if !b.verbose && t.Outcome == Crosses {
		return
	}
	b.line("    %s  %s\n             %s\n", t.Outcome, whose, b.why(t.Why, t.Rule))
}
