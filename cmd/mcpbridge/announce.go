package main

import (
	"strings"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// announcement is what serve prints once it serves.
type announcement struct {
	Endpoints []announcedEndpoint `json:"endpoints"`
	Admin     string              `json:"admin,omitempty"`

	opens string // how the page is opened if that takes a token, after its address
}

type announcedEndpoint struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// announce prints the endpoints, and what to try next as it can be typed.
func (d *daemon) announce() error {
	addr := d.mcp.Addr().String()
	var a announcement
	if d.admin != nil {
		a.Admin = report.Admin(d.config, d.admin.Addr())
		if d.config.AdminToken != "" || d.config.Authenticates() {
			a.opens = " (mcpbridge admin prints a link that opens it)"
		}
	}
	var example *config.Server
	for i := range d.config.Servers {
		s := &d.config.Servers[i]
		if s.Disabled {
			continue
		}
		a.Endpoints = append(a.Endpoints, announcedEndpoint{s.Name, report.Endpoint(d.config, addr, s.Name)})
		if example == nil || s.Builtin != "" && example.Builtin == "" {
			example = s
		}
	}
	for i := range d.config.Groups {
		name := d.config.Groups[i].Name
		a.Endpoints = append(a.Endpoints, announcedEndpoint{name, report.Endpoint(d.config, addr, name)})
	}
	if d.asJSON {
		return output.JSON(d.stdout, a)
	}
	t := trial{self: d.self(), url: report.Endpoint(d.config, addr, example.Name), builtin: example.Builtin}
	t.flags, t.before = report.ToReach(d.config, example)
	_, err := output.Printf(d.stdout, "%s%s", output.Block(a.text()), output.Block(t.text()))
	return err
}

func (a announcement) text() string {
	var b strings.Builder
	b.WriteString("mcpbridge serves MCP clients of every revision at\n")
	for _, e := range a.Endpoints {
		_, _ = output.Printf(&b, "  %s\n", e.URL)
	}
	switch path, isSocket := strings.CutPrefix(a.Admin, "unix:"); {
	case isSocket:
		_, _ = output.Printf(&b, "and its state on the socket, for mcpbridge top and tail\n  %s\n", path)
	case a.Admin != "":
		_, _ = output.Printf(&b, "See what passes: %[1]s/%[2]s\n  in a terminal: mcpbridge tail, mcpbridge top; for monitoring: %[1]s/metrics, %[1]s/readyz\n", a.Admin, a.opens)
	}
	return b.String()
}

// A trial is what a newcomer may type next.
type trial struct {
	self, url, builtin string
	flags              string // with a space before them, by which the server is reached
	before             string // what has to be done before, as a command; empty for nothing
}

// text says it. The notebook can be followed and edited; of other servers only the tools are sure
// to be there.
func (t trial) text() string {
	first, second := "see its tools, or follow them", ""
	lines := []string{"call " + t.url, "listen " + t.url + " --tools"}
	if t.builtin == "notebook" {
		first, second = "follow a note", "In a third, edit it:\n"
		lines = []string{"listen " + t.url + " --resource note://todo", "call " + t.url + " edit_note name=todo text=x"}
	}
	text := "\nIn a second terminal, " + first + ":\n"
	if t.before != "" {
		text += "  " + t.before + "\n"
	}
	return output.Sprintf("%s  %s %s%s\n%s  %s %s%s\n", output.Block(text), t.self, lines[0], t.flags, output.Block(second), t.self, lines[1], t.flags)
}
