package main

import (
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// announce prints the endpoints, and what to try next as it can be typed.
func (d *daemon) announce() error {
	addr := d.mcp.Addr().String()
	var a report.Announcement
	if d.admin != nil {
		a.Admin = report.Admin(d.config, d.admin.Addr())
		if d.config.AdminToken != "" || d.config.Authenticates() {
			a.Opens = " (mcpbridge admin prints a link that opens it)"
		}
	}
	var example *config.Server
	for i := range d.config.Servers {
		s := &d.config.Servers[i]
		if s.Disabled {
			continue
		}
		a.Endpoints = append(a.Endpoints, report.Announced{Name: s.Name, URL: report.Endpoint(d.config, addr, s.Name)})
		if example == nil || s.Builtin != "" && example.Builtin == "" {
			example = s
		}
	}
	for i := range d.config.Groups {
		name := d.config.Groups[i].Name
		a.Endpoints = append(a.Endpoints, report.Announced{Name: name, URL: report.Endpoint(d.config, addr, name)})
	}
	if d.asJSON {
		return output.JSON(d.stdout, a)
	}
	t := report.Trial{Self: d.self(), URL: report.Endpoint(d.config, addr, example.Name), Builtin: example.Builtin}
	t.Flags, t.Before = report.ToReach(d.config, example)
	_, err := output.Printf(d.stdout, "%s%s", output.Block(a.Text()), output.Block(t.Text()))
	return err
}
