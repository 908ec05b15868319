package matrix

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
)

const tableFile = "../../matrix/table.json"

// TestMatrix tries one cell of each client with each server, or with MATRIX=all
// every cell, and leaves the table in bin/pairings.txt.
func TestMatrix(t *testing.T) {
	table := load(t)
	plan := table.once()
	if os.Getenv("MATRIX") == "all" {
		plan = table.all()
	}
	w := startWorld(t, table)
	var found outcomes
	var tours sync.WaitGroup
	for i, client := range table.clients() {
		cells := rotate(plan[client], i*len(plan[client])/len(table.Clients))
		// Not with t.Parallel, which would let as many run as there are cores: they wait a lot.
		tours.Go(func() { t.Run(client, func(t *testing.T) { tour(t, w, client, cells, &found) }) })
	}
	tours.Wait()
	text := found.print(table, plan)
	t.Log("\n" + text)
	if err := os.WriteFile("../../bin/pairings.txt", []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	if untried := found.untried(plan); len(untried) > 0 {
		t.Errorf("nobody tried %v", untried)
	}
}

func startWorld(t *testing.T, table *Table) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*process.StartTime)
	defer cancel()
	w, err := newWorld(ctx, table, t.TempDir())
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() && w.bridge != nil {
			t.Logf("mcpbridge wrote:\n%s", w.bridge.Log())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// rotate lets each client begin elsewhere, so that they don't wait for each other.
func rotate(cells []Cell, by int) []Cell {
	return append(cells[by:len(cells):len(cells)], cells[:by]...)
}

// tour takes one client, one process, through its cells.
func tour(t *testing.T, w *world, client string, cells []Cell, found *outcomes) {
	c := startClient(t, w, client)
	for _, cell := range cells {
		t.Run(cell.Server+"/"+cell.Front+">"+cell.Back, func(t *testing.T) {
			err := visit(t.Context(), w, c, cell)
			found.set(cell, err)
			if err != nil {
				t.Errorf("%v; the client wrote:\n%s", err, c.Log())
			}
		})
		if c.Ended() { // the cells that come have nothing to do with it
			t.Errorf("the client ended in %s", cell)
			c = startClient(t, w, client)
		}
	}
}

// startClient starts a client. It ends with the test.
func startClient(t *testing.T, w *world, client string) *steer.Client {
	t.Helper()
	var argv []string
	for _, arg := range w.table.Clients[client].Argv {
		argv = append(argv, w.fill(arg))
	}
	c, err := steer.Start(argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.End(); err != nil {
			t.Errorf("%v; it wrote:\n%s", err, c.Log())
		}
	})
	return c
}

// cellTime bounds a cell, once its turn has come.
const cellTime = 5 * time.Minute

// visit waits for the client's turn on the server, then until not too many others
// are under way, and takes the round there.
func visit(ctx context.Context, w *world, c *steer.Client, cell Cell) error {
	turn := w.turns[spot{cell.Server, cell.Back}]
	turn.Lock()
	defer turn.Unlock()
	w.slots <- struct{}{}
	defer func() { <-w.slots }()
	ctx, cancel := context.WithTimeout(ctx, cellTime)
	defer cancel()
	r := &round{Client: c, world: w, cell: cell, server: w.table.Servers[cell.Server]}
	before, err := w.quirks(cell)
	if err != nil {
		return err
	}
	w.forget(cell)
	if err := r.take(ctx); err != nil {
		return err
	}
	return w.judgeQuirks(cell, before)
}
