package report

import (
	"strings"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
)

// An Announcement is what serve prints once it serves.
type Announcement struct {
	Endpoints []Announced `json:"endpoints"`
	Admin     string      `json:"admin,omitempty"`

	Opens string `json:"-"` // how the page is opened if that takes a token, after its address
}

// An Announced is one endpoint.
type Announced struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Text says it to people.
func (a Announcement) Text() string {
	var b strings.Builder
	b.WriteString("mcpbridge serves MCP clients of every revision at\n")
	for _, e := range a.Endpoints {
		_, _ = output.Printf(&b, "  %s\n", e.URL)
	}
	switch path, isSocket := strings.CutPrefix(a.Admin, "unix:"); {
	case isSocket:
		_, _ = output.Printf(&b, "and its state on the socket, for mcpbridge top and tail\n  %s\n", path)
	case a.Admin != "":
		_, _ = output.Printf(&b, "See what passes: %[1]s/%[2]s\n  in a terminal: mcpbridge tail, mcpbridge top; for monitoring: %[1]s/metrics, %[1]s/readyz\n", a.Admin, a.Opens)
	}
	return b.String()
}

// A Trial is what a newcomer may type next.
type Trial struct {
	Self, URL, Builtin string
	Flags              string // with a space before them, by which the server is reached
	Before             string // what has to be done before, as a command; empty for nothing
}

// Text says it. The notebook can be followed and edited; of other servers only the tools are sure
// to be there.
func (t Trial) Text() string {
	first, second := "see its tools, or follow them", ""
	lines := []string{"call " + t.URL, "listen " + t.URL + " --tools"}
	if t.Builtin == "notebook" {
		first, second = "follow a note", "In a third, edit it:\n"
		lines = []string{"listen " + t.URL + " --resource note://todo", "call " + t.URL + " edit_note name=todo text=x"}
	}
	text := "\nIn a second terminal, " + first + ":\n"
	if t.Before != "" {
		text += "  " + t.Before + "\n"
	}
	return output.Sprintf("%s  %s %s%s\n%s  %s %s%s\n", output.Block(text), t.Self, lines[0], t.Flags, output.Block(second), t.Self, lines[1], t.Flags)
}
