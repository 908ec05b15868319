package day

import (
	"fmt"
	"maps"
	"math/rand/v2"
)

// A model is what a direct client would find at its server.
type model struct {
	page       string
	mem, saved map[string]string
	count      int
}

func newModel() *model {
	m := &model{saved: make(map[string]string)}
	m.lost()
	return m
}

// lost is what a process that starts anew has, after one that had no time to save.
func (m *model) lost() { m.page, m.mem, m.count = "about:blank", maps.Clone(m.saved), 0 }

// closed is what follows the proper end of a process.
func (m *model) closed() {
	m.saved = m.mem
	m.lost()
}

// fresh reports whether there is nothing to lose.
func (m *model) fresh() bool {
	return m.page == "about:blank" && maps.Equal(m.mem, m.saved) && m.count == 0
}

// A step is one thing that a client does.
type step struct {
	do   string // call, read, list, pause, stop-server, stop-client, die, kill, reconnect or vanish
	tool string
	args map[string]string
}

func (s step) String() string { return fmt.Sprint(s.do, " ", s.tool, " ", s.args) }

// apply returns the text of the right answer, and keeps what the step changes.
func (m *model) apply(s step) string {
	switch s.tool {
	case "navigate":
		m.page = s.args["url"]
		return "at " + m.page
	case "snapshot":
		return "page " + m.page
	case "put":
		m.mem[s.args["key"]] = s.args["value"]
		return "put"
	case "get":
		return "value " + m.mem[s.args["key"]]
	case "advance":
		m.count++
	}
	return fmt.Sprint("count ", m.count)
}

// use returns a random call of a kind of server.
func use(r *rand.Rand, kind string) step {
	change := r.IntN(5) < 2
	switch kind {
	case "browser":
		if change {
			return step{do: "call", tool: "navigate", args: map[string]string{"url": fmt.Sprint("https://example.com/", r.IntN(1000))}}
		}
		return step{do: "call", tool: "snapshot"}
	case "database":
		key := fmt.Sprint("k", r.IntN(4))
		if change {
			return step{do: "call", tool: "put", args: map[string]string{"key": key, "value": fmt.Sprint(r.IntN(1000))}}
		}
		return step{do: "call", tool: "get", args: map[string]string{"key": key}}
	}
	if change {
		return step{do: "call", tool: "advance"}
	}
	return step{do: "read", tool: "read"}
}

// rare are the steps that are no calls, each with its share of a hundred.
var rare = []struct {
	do    string
	share int
}{{"pause", 6}, {"list", 4}, {"reconnect", 4}, {"vanish", 2}, {"die", 2}, {"kill", 2}, {"stop-server", 2}, {"stop-client", 2}}

// choose returns the next step: most are calls.
func choose(r *rand.Rand, kind string) step {
	n := r.IntN(100)
	for _, s := range rare {
		if n -= s.share; n < 0 {
			return step{do: s.do}
		}
	}
	return use(r, kind)
}
