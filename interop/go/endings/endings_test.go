//go:build linux

package endings

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// within is when nothing may be left any more: clients kill 4 s after the end, and a busy
// machine has 2 s more.
const within = 6 * time.Second

// An ending is one way in which mcpbridge ends.
type ending struct {
	name  string
	do    func(b *bridge)
	wraps bool // only wrap
	kills bool // mcpbridge has no say in it
}

var endings = []ending{
	{name: "kill -9", do: func(b *bridge) { b.signal(syscall.SIGKILL) }, kills: true},
	{name: "SIGHUP", do: func(b *bridge) { b.signal(syscall.SIGHUP) }, wraps: true}, // serve reloads its file
	{name: "SIGTERM", do: func(b *bridge) { b.signal(syscall.SIGTERM) }},
	{name: "closed terminal", do: func(b *bridge) { _ = b.terminal.Close() }},
	{name: "end of input", do: func(b *bridge) { _ = b.in.Close() }, wraps: true},
}

func (b *bridge) signal(sig syscall.Signal) {
	if err := b.cmd.Process.Signal(sig); err != nil {
		b.t.Errorf("%v: %v", sig, err)
	}
}

const (
	hello    = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`
	shaken   = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	list     = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	call     = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait","arguments":{}}}`
	discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// A stage is how far things have come. reach brings them there: what the server has read
// says that they have.
type stage struct {
	name  string
	mute  string // what the server does not answer
	reach func(b *bridge)
}

var stages = []stage{
	{"right after the start", silent, func(*bridge) { time.Sleep(20 * time.Millisecond) }},
	{"silent at the first request", silent, func(b *bridge) {
		if b.cmd.Args[1] == "wrap" {
			b.script()
		}
		b.await("read ")
	}},
	{"before initialize", "initialize", func(b *bridge) {
		if b.cmd.Args[1] == "wrap" {
			b.tell(discover)
		}
		b.await("answered server/discover")
	}},
	{"initialize under way", "initialize", func(b *bridge) {
		if b.cmd.Args[1] == "wrap" {
			b.script()
		} else {
			b.tell(hello)
		}
		b.await("read initialize")
	}},
	{"initialized", "", func(b *bridge) { b.enter() }},
	{"call in flight", "", func(b *bridge) {
		b.enter()
		b.tell(call)
		b.await("read tools/call")
	}},
}

// script sends what comes after initialize without waiting for its answer.
func (b *bridge) script() {
	b.tell(hello)
	b.tell(shaken)
	b.tell(list)
}

func (b *bridge) enter() {
	b.tell(hello)()
	b.tell(shaken)
	b.tell(list)()
}

// TestU04NothingIsLeft runs the table.
func TestU04NothingIsLeft(t *testing.T) {
	all := os.Getenv("ENDINGS") == "all"
	for c, command := range []string{"wrap", "serve"} {
		for e, end := range endings {
			for s, st := range stages {
				for k, kind := range []string{wellBehaved, stubborn, parent} {
					if end.wraps && command != "wrap" || !all && (c+e+s+k)%3 != 0 {
						continue // one of three covers every pair
					}
					t.Run(fmt.Sprintf("%s/%s/%s/%s", command, end.name, st.name, kind), func(t *testing.T) {
						t.Parallel()
						check(t, command, end, st, kind)
					})
				}
			}
		}
	}
}

// check has mcpbridge end, and wants nothing left in time.
func check(t *testing.T, command string, end ending, st stage, kind string) {
	b := startBridge(t, command, kind, st.mute)
	st.reach(b)
	bound := within
	if command == "serve" && !end.kills {
		bound += drain
	}
	begin := time.Now()
	end.do(b)
	rest := left(b.dir)
	for gone := 0; gone < 3 && (len(rest) == 0 || time.Since(begin) < bound); rest = left(b.dir) { // what starts another may be missed once
		if gone++; len(rest) > 0 {
			gone = 0
		}
		time.Sleep(50 * time.Millisecond)
	}
	if len(rest) > 0 {
		t.Fatalf("%v after the end there are %v; mcpbridge says:\n%s", bound, rest, b.log.String())
	}
	t.Logf("nothing is left after %v", time.Since(begin).Round(10*time.Millisecond))
	<-b.done
	how := b.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if s := st.name; how.Signaled() && !end.kills && s != stages[0].name {
		t.Errorf("mcpbridge was ended by %v, and did not drain", how.Signal())
	}
}
