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
	_, err := output.Printf(d.stdout, "%s%s", output.Block(a.text()), output.Block(try(d.self(), report.Endpoint(d.config, addr, example.Name), example.Builtin)))
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
		_, _ = output.Printf(&b, "and metrics and health on the socket\n  %s\n", path)
	case a.Admin != "":
		_, _ = output.Printf(&b, "and metrics and health at\n  %[1]s/metrics  %[1]s/readyz\n", a.Admin)
	}
	return b.String()
}

// try says what a newcomer may type next. The notebook can be followed and
// edited; of other servers only the tools are sure to be there.
func try(self, url, builtin string) string {
	if builtin != "notebook" {
		return output.Sprintf("\nIn a second terminal, see its tools, or follow them:\n  %s call %s\n  %s listen %s --tools\n", self, url, self, url)
	}
	return output.Sprintf("\nIn a second terminal, follow a note:\n  %s listen %s --resource note://todo\nIn a third, edit it:\n  %s call %s edit_note name=todo text=x\n", self, url, self, url)
}
