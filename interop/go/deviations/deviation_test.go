package deviations

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// The sides of a deviation.
const (
	verb     = iota // what is sent
	asks            // the revision that initialize asks for, which opens the session
	header          // MCP-Protocol-Version
	envelope        // in _meta of the params
	session         // Mcp-Session-Id
	accept
	body // its form
	sides
)

// A deviation is one request of a client that may keep to no revision: a value for each side.
type deviation [sides]string

func (d deviation) String() string { return strings.Join(d[:], " ") }

// The values of each side. Of the header, own is what initialize was answered with, or what it
// would ask for.
var values = [sides][]string{
	verb:     {"initialize", "initialized", "tools/list", "tools/call", "resources/read", "ping", "server/discover", "GET", "DELETE", "notification", "response", "batch"},
	asks:     {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "v999.0.0"},
	header:   {"own", "none", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "v999.0.0", "2000-01-01", "2099-01-01"},
	envelope: {"none", "full", "partial", "legacy"},
	session:  {"own", "none", "unknown", "over"},
	accept:   {"both", "json", "stream", "any", "none"},
	body:     {"fine", "spaces", "text-id", "no-params", "null-params", "charset", "text"},
}

// unknown are the revisions that never were, and never work.
var unknown = []string{"v999.0.0", "2000-01-01", "2099-01-01"}

// generate returns n deviations that differ. Each verb has its turn. Two of three are requests
// as they should be but for one to three sides; the third is anything.
func generate(seed uint64, n int) []deviation {
	r := rand.New(rand.NewPCG(seed, 29))
	var all []deviation
	seen := make(map[deviation]bool)
	for i := 0; len(all) < n; i++ {
		d := sound(r, values[verb][i%len(values[verb])])
		changed := 1 + r.IntN(3)
		if r.IntN(3) == 0 {
			changed = 4 * sides
		}
		for range changed {
			side := asks + r.IntN(sides-asks)
			d[side] = values[side][r.IntN(len(values[side]))]
		}
		if d = d.plain(); !seen[d] {
			seen[d] = true
			all = append(all, d)
		}
	}
	return all
}

// sound returns a request as it should be, of either era if both have it.
func sound(r *rand.Rand, what string) deviation {
	d := deviation{what, values[asks][r.IntN(4)], "own", "none", "own", "both", "fine"}
	both := []string{"tools/list", "tools/call", "resources/read", "notification"}
	switch {
	case what == "initialize":
		d[header], d[session] = "none", "none"
	case what == "server/discover" || slices.Contains(both, what) && r.IntN(2) == 0:
		d[header], d[envelope], d[session] = "2026-07-28", "full", "none"
	}
	return d
}

// plain returns d without what makes no difference to what is sent.
func (d deviation) plain() deviation {
	if d[verb] == "GET" || d[verb] == "DELETE" {
		d[body] = "fine"
	}
	if strings.HasSuffix(d[body], "-params") || slices.Contains([]string{"GET", "DELETE", "response"}, d[verb]) {
		d[envelope] = "none" // there is no place for it
	}
	if d.opens() || d[verb] == "initialize" {
		return d
	}
	if d[asks] = "2025-11-25"; d[header] == "own" {
		d[header] = d[asks]
	}
	return d
}

// opens reports whether a session is opened before the request.
func (d deviation) opens() bool { return d[session] == "own" || d[session] == "over" }
