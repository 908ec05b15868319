package firststart

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// An odd is a server that is odd about its first request, or about other processes.
type odd struct {
	name   string
	server string   // of the matrix, behind it
	flags  []string // of the program odd; with none it is the server itself that is odd
	modern bool     // the server is

	again bool // a process that was asked in the other era is of no use any more
	alone bool // only one process may run
}

// odds are the servers. {dir} is the folder of the stand, {addr} an address.
var odds = []*odd{
	{name: "exits", server: "go-1.6.1", flags: []string{"-unknown", "exit"}, again: true},
	{name: "wedges", server: "go-1.6.1", flags: []string{"-unknown", "wedge"}, again: true},
	{name: "silent", server: "go-1.6.1", flags: []string{"-unknown", "silent"}},
	{name: "noise", server: "go-1.6.1", flags: []string{"-unknown", "noise"}},
	{name: "pinned", server: "go-1.6.1", flags: []string{"-unknown", "pin"}, again: true},
	{name: "pinned-modern", server: "go-1.8.0-modern", flags: []string{"-unknown", "pin", "-modern"}, modern: true, again: true},
	{name: "lock", server: "go-1.6.1", flags: []string{"-lock", "{dir}/lock"}, alone: true},
	{name: "port", server: "go-1.6.1", flags: []string{"-port", "{addr}"}, alone: true},
	{name: "slow-release", server: "go-1.6.1", flags: []string{"-lock", "{dir}/lock", "-release", "300ms"}, alone: true},
	{name: "slow-release-modern", server: "go-1.8.0-modern", flags: []string{"-lock", "{dir}/lock", "-release", "300ms"}, modern: true, alone: true},
	// Real ones: this SDK writes 90 lines at an unknown request, and these two have a
	// word of their own for what is of another era.
	{name: "python-1", server: "python-1"},
	{name: "python-2", server: "python-2", modern: true},
	{name: "typescript-2.4.0-modern", server: "typescript-2.4.0-modern", modern: true},
}

// heavy reports whether a start takes long enough to count.
func (o *odd) heavy() bool { return o.flags == nil }

// first is how many starts it takes until the server is described to a client whose
// first request is of this era.
func (o *odd) first(modern bool) int {
	if o.again && modern != o.modern {
		return 2
	}
	return 1
}

func (o *odd) stand(t *testing.T) (*stand, *server) {
	t.Helper()
	var s *server
	at := newStand(t, func(starts, dir string) []string {
		s = fromMatrix(t, o.server, dir)
		if o.heavy() {
			return append([]string{fill("{interop}/odd/slow"), starts, "0"}, s.command()...)
		}
		argv := []string{fill("{bin}/odd"), "-starts", starts}
		argv = append(argv, fillAll(o.flags, "{dir}", dir, "{addr}", ownAddr())...)
		return append(argv, s.command()...)
	})
	return at, s
}

// ownAddr returns an address of this machine that nobody else uses: a port that was
// looked for, and found free, might be taken before the server is there.
func ownAddr() string {
	return fmt.Sprintf("127.%d.%d.%d:7411", 1+rand.N(250), rand.N(250), 1+rand.N(250))
}

// TestOddDirectly sees that the servers are as odd as they should be, with nothing
// between, and that they serve who asks them rightly.
func TestOddDirectly(t *testing.T) {
	for _, o := range odds {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			at, s := o.stand(t)
			c := start(t, go161, go161.argv, legacyRevision)
			if o.modern {
				c = start(t, go180, go180.argv, modernRevision)
			}
			if _, err := c.visit(t.Context(), at.direct(), s); err != nil {
				t.Fatalf("%s, directly: %v; it wrote:\n%s", o.name, err, c.Log())
			}
			if !o.heavy() {
				o.beOdd(t, at)
			}
		})
	}
}

// patience is how long what must come is waited for.
const patience = 2 * time.Minute

// beOdd asks what the server can't take.
func (o *odd) beOdd(t *testing.T, at *stand) {
	unknown, known := asksDiscover, asksInitialize
	if o.modern {
		unknown, known = known, unknown
	}
	p := openPipe(t, at.command...)
	if o.alone {
		defer func() { _, _ = p.end() }()
		o.beAlone(t, p, at, known)
		return
	}
	first, second := patience, patience
	if o.flags[1] == "wedge" || o.flags[1] == "silent" {
		first = 300 * time.Millisecond // of silence
	}
	if o.flags[1] == "wedge" {
		second = 500 * time.Millisecond
	}
	a, noise, err := p.ask(unknown, first)
	b, _, err2 := p.ask(known, second)
	_, _ = p.end() // some end with an error; all that it wrote has come then
	ended := err != nil && strings.Contains(err.Error(), "ended")
	silent := err != nil && !ended
	lines := strings.Count(p.log.String(), "\n")
	isOdd := map[string]bool{
		"exit":   ended && err2 != nil,
		"wedge":  silent && err2 != nil,
		"silent": silent && err2 == nil && b.Error == nil,
		"noise":  err == nil && a.Error != nil && noise > 0 && lines >= 90 && err2 == nil && b.Error == nil,
		"pin":    err == nil && a.Error != nil && err2 == nil && b.Error != nil,
	}
	if !isOdd[o.flags[1]] {
		t.Errorf("%s: asked what it can't take it answered %+v, %v, with %d lines of noise and %d on standard error, and then %+v, %v", o.name, a, err, noise, lines, b, err2)
	}
}

// beAlone sees a second process die beside the one that runs.
func (o *odd) beAlone(t *testing.T, p *pipe, at *stand, request string) {
	if _, _, err := p.ask(request, patience); err != nil {
		t.Errorf("%s: %v", o.name, err)
	}
	second := openPipe(t, at.command...)
	_, _, asked := second.ask(request, patience)
	_, err := second.end()
	said := second.log.String()
	if asked == nil || err == nil || !strings.Contains(said, "another process has the lock") && !strings.Contains(said, "address already in use") {
		t.Errorf("%s: a second process answered %v, ended with %v and wrote %q", o.name, asked, err, said)
	}
}
