package interop

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// outcomes collects what the clients found: "ok" or what went wrong, by
// client, server and feature.
type outcomes struct {
	mu    sync.Mutex
	found map[[3]string]string
}

func (o *outcomes) set(client, server, feature, outcome string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found == nil {
		o.found = make(map[[3]string]string)
	}
	o.found[[3]string{client, server, feature}] = outcome
}

// table prints what was found, a row per feature, and the reasons for what is
// lacking. It returns the cells that ought to have been tried and were not.
// visits has the clients that had to try, by server.
func (o *outcomes) table(m *Matrix, visits map[string][]string) (text string, untried []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	servers := m.names()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\t%s\n", strings.Join(servers, "\t"))
	for _, f := range m.Features {
		fmt.Fprint(w, f)
		for _, s := range servers {
			cell := o.cell(m, visits[s], s, f)
			if strings.Contains(cell, "untried") {
				untried = append(untried, s+", "+f)
			}
			fmt.Fprintf(w, "\t%s", cell)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintln(&b)
	var clients []string
	for _, s := range servers {
		fmt.Fprintf(&b, "%s: with %s\n", s, strings.Join(visits[s], ", "))
		clients = append(clients, visits[s]...)
	}
	slices.Sort(clients)
	clients = slices.Compact(clients)
	for _, s := range servers {
		for _, f := range m.Features {
			if why := m.Servers[s].Lacks[f]; why != "" {
				fmt.Fprintf(&b, "-: %s, %s: %s\n", s, f, why)
			}
		}
	}
	for _, name := range clients {
		if c := m.Clients[name]; c != nil {
			for _, f := range slices.Sorted(maps.Keys(c.Lacks)) {
				fmt.Fprintf(&b, "-: with %s, %s: %s\n", name, f, c.Lacks[f])
			}
		}
	}
	return b.String(), untried
}

// cell returns "ok", or what each client that isn't content found, or "-" if there
// is nothing to try for any.
func (o *outcomes) cell(m *Matrix, clients []string, server, feature string) string {
	var bad []string
	tried := 0
	for _, c := range clients {
		if m.lack(c, server, feature) != "" {
			continue
		}
		tried++
		switch o.found[[3]string{c, server, feature}] {
		case "ok":
		case "":
			bad = append(bad, c+" untried")
		default:
			bad = append(bad, c+" FAILED")
		}
	}
	switch {
	case tried == 0:
		return "-"
	case len(bad) == 0:
		return "ok"
	}
	return strings.Join(bad, ", ")
}
