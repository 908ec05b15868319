package matrix

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// outcomes are what came of the cells that were tried; nil is good.
type outcomes struct {
	mu    sync.Mutex // guards found
	found map[Cell]error
}

func (o *outcomes) set(c Cell, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found == nil {
		o.found = make(map[Cell]error)
	}
	o.found[c] = err
}

// untried returns the cells of a plan that nothing came of.
func (o *outcomes) untried(plan map[string][]Cell) (cells []Cell) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, client := range slices.Sorted(maps.Keys(plan)) {
		for _, c := range plan[client] {
			if _, ok := o.found[c]; !ok {
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// print returns a row for each client and a column for each server; what went
// wrong; and why there is no more.
func (o *outcomes) print(t *Table, plan map[string][]Cell) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "front>back\t%s\n", strings.Join(t.servers(), "\t"))
	for _, client := range t.clients() {
		fmt.Fprint(w, client)
		for _, server := range t.servers() {
			fmt.Fprintf(w, "\t%s", o.square(plan[client], server))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	for _, c := range slices.SortedFunc(maps.Keys(o.found), func(a, b Cell) int { return cmp.Compare(a.String(), b.String()) }) {
		if err := o.found[c]; err != nil {
			fmt.Fprintf(&b, "FAILED: %s: %v\n", c, err)
		}
	}
	for _, why := range t.reasons() {
		fmt.Fprintf(&b, "-: %s\n", why)
	}
	return b.String()
}

// square says what came of a client's cells with a server: the transports of the
// one that was planned, or how many went well.
func (o *outcomes) square(plan []Cell, server string) string {
	var cells []Cell
	good := 0
	for _, c := range plan {
		if c.Server != server {
			continue
		}
		cells = append(cells, c)
		if err, ok := o.found[c]; ok && err == nil {
			good++
		}
	}
	switch {
	case len(cells) == 0:
		return "-"
	case good < len(cells):
		return fmt.Sprintf("%d of %d", good, len(cells))
	case len(cells) == 1:
		return cells[0].Front + ">" + cells[0].Back
	}
	return fmt.Sprintf("all %d", good)
}

// markdown is the short form: how many cells each client has with each server.
func (t *Table) markdown() string {
	var b strings.Builder
	fmt.Fprint(&b, "| client |")
	for _, name := range t.servers() {
		fmt.Fprintf(&b, " %s<br>%s |", t.Servers[name].Title, strings.Join(t.Servers[name].backs(), " "))
	}
	fmt.Fprintf(&b, "\n| --- |%s\n", strings.Repeat(" --: |", len(t.Servers)))
	for _, client := range t.clients() {
		c := t.Clients[client]
		fmt.Fprintf(&b, "| %s<br>%s |", c.Title, strings.Join(c.fronts(), " "))
		for _, server := range t.servers() {
			if n := len(t.pairs(client, server)); n > 0 {
				fmt.Fprintf(&b, " %d |", n)
			} else {
				fmt.Fprint(&b, " – |")
			}
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// reasons says of everything that is not there why.
func (t *Table) reasons() (all []string) {
	for _, name := range t.clients() {
		lacks := t.Clients[name].Lacks
		for _, what := range slices.Sorted(maps.Keys(lacks)) {
			all = append(all, name+" speaks no "+t.Transports[what]+": "+lacks[what])
		}
	}
	for _, name := range t.clients() {
		if why := t.Clients[name].Hasty; why != "" {
			all = append(all, name+" hears of the second change: "+why)
		}
	}
	for _, name := range t.servers() {
		lacks := t.Servers[name].Lacks
		for _, what := range slices.Sorted(maps.Keys(lacks)) {
			all = append(all, name+", "+cmp.Or(t.Transports[what], what)+": "+lacks[what])
		}
	}
	for _, e := range t.Except {
		all = append(all, e.where()+": "+e.Why)
	}
	return all
}

// where says which cells and step an exception is for.
func (e *Except) where() string {
	var parts []string
	for _, p := range [][2]string{{e.Client, ""}, {e.Front, "over "}, {e.Server, "with "}, {e.Back, "behind "}, {e.Step, "step "}} {
		if p[0] != "" {
			parts = append(parts, p[1]+p[0])
		}
	}
	return strings.Join(parts, " ")
}
