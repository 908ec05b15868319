package deviations

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// recovery is how long what is away may take to serve again, after it was started.
const recovery = 3 * time.Minute

// A stand is a server and mcpbridge before it, either of which can be slow, away, or started anew.
type stand struct {
	t              *testing.T
	s              published
	addr           string // of the server
	listen, admin  string
	server, bridge *process.Process
	c              *http.Client
}

func newStand(t *testing.T, s published) *stand {
	t.Helper()
	st := &stand{t: t, s: s, addr: rig.FreeAddr(t), listen: rig.FreeAddr(t), admin: rig.FreeAddr(t), c: newClient(t)}
	t.Cleanup(func() { st.server.Kill() })
	st.startServer()
	t.Cleanup(func() { st.stopBridge() })
	st.startBridge()
	return st
}

func (st *stand) startServer() {
	st.t.Helper()
	_, port, _ := net.SplitHostPort(st.addr)
	env, argv := st.s.start(st.addr, port)
	p, err := process.Start(st.s.name, env, argv...)
	if err != nil {
		st.t.Fatal(err)
	}
	st.server = p
	ctx, cancel := context.WithTimeout(st.t.Context(), process.StartTime)
	defer cancel()
	if err := p.Ready(ctx, "http://"+st.addr+st.s.path, 0); err != nil {
		st.t.Fatal(err)
	}
}

func (st *stand) startBridge() {
	st.t.Helper()
	st.bridge = programs.StartBridge(st.t, fmt.Sprintf("listen: %s\nadmin: %s\nservers:\n  it: {url: %q}\n", st.listen, st.admin, "http://"+st.addr+st.s.path), st.admin)
}

func (st *stand) stopBridge() {
	if err := st.bridge.Stop(time.Minute); err != nil {
		st.t.Error(err)
	}
}

// through is where mcpbridge serves the server.
func (st *stand) through() place {
	at := st.s.place
	at.url = "http://" + st.listen + "/mcp/it"
	return at
}

// A standFault is something that goes wrong for a while.
type standFault struct {
	name string
	take func(st *stand) // returns when it is over
	// takes is whether all that is taken otherwise is taken meanwhile, later at most.
	takes bool
}

var standFaults = []standFault{
	{"slow", func(st *stand) {
		for range 12 {
			_ = syscall.Kill(-st.server.Pid(), syscall.SIGSTOP) // it runs until the test ends
			time.Sleep(300 * time.Millisecond)
			_ = syscall.Kill(-st.server.Pid(), syscall.SIGCONT)
			time.Sleep(100 * time.Millisecond)
		}
	}, true},
	{"away", func(st *stand) {
		st.server.Kill()
		time.Sleep(3 * time.Second)
		st.startServer()
	}, false},
	{"started anew", func(st *stand) {
		st.server.Kill()
		st.startServer()
	}, false},
	{"mcpbridge started anew", func(st *stand) {
		st.stopBridge()
		st.startBridge()
	}, false},
}

// TestDeviationsUnderFaults plays deviations while a server is slow, away or started anew, or
// mcpbridge is: what is refused otherwise is refused then, too, what is taken is taken from a server
// that is only slow, and afterwards all is as before.
func TestDeviationsUnderFaults(t *testing.T) {
	seed, n := rig.Int(t, "SEED", usual), int(rig.Int(t, "DEVIATIONS", 300))
	names := []string{"go-sdk-1.8.0-sessions"}
	if n > 300 {
		names = append(names, "typescript-1.32.2", "typescript-2.4.0", "go-sdk-1.8.0")
	}
	deviations := generate(uint64(seed), n/3)
	for _, s := range all {
		if slices.Contains(names, s.name) {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				newStand(t, s).playFaults(deviations)
			})
		}
	}
}

func (st *stand) playFaults(deviations []deviation) {
	before := st.playAll(deviations)
	for _, f := range standFaults {
		r := rand.New(rand.NewPCG(uint64(len(f.name)), uint64(len(deviations))))
		over := make(chan struct{})
		var player sync.WaitGroup
		for range 4 {
			turn := r.Perm(len(deviations))
			player.Go(func() { // ends with the fault
				for _, i := range slices.Repeat(turn, 100) {
					select {
					case <-over:
						return
					default:
					}
					st.playOne(f, deviations[i], before[deviations[i]])
				}
			})
		}
		f.take(st)
		close(over)
		player.Wait()
		st.recovers()
		after := st.playAll(deviations)
		for _, d := range slices.SortedFunc(maps.Keys(after), func(a, b deviation) int { return slices.Compare(a[:], b[:]) }) {
			if was, is := before[d], after[d]; was.String() != is.String() {
				st.t.Errorf("after the server was %s, %s is %v, and before %v: %s", f.name, d, is, was, is.text)
			}
		}
	}
}

// playAll plays the deviations while nothing is wrong.
func (st *stand) playAll(deviations []deviation) map[deviation]outcome {
	outcomes := make([]outcome, len(deviations))
	err := rig.Each(len(deviations), 4, func(i int) (err error) {
		outcomes[i], err = st.through().play(st.t.Context(), st.c, deviations[i])
		return err
	})
	if err != nil {
		st.t.Error(err)
	}
	all := make(map[deviation]outcome)
	for i, d := range deviations {
		all[d] = outcomes[i]
	}
	return all
}

// playOne plays a deviation during a fault; was is what it gets otherwise.
func (st *stand) playOne(f standFault, d deviation, was outcome) {
	got, err := st.through().play(st.t.Context(), st.c, d)
	switch {
	case was.opened && !got.opened: // it is another deviation without a session
	case got.taken && !was.taken:
		st.t.Errorf("while the server is %s, %s is taken, and otherwise it is %v", f.name, d, was)
	case f.takes && was.taken && !got.taken:
		st.t.Errorf("while the server is %s, %s is %v (%v), and otherwise it is taken: %s", f.name, d, got, err, got.text)
	case err == nil && !got.taken && got.text == "" && was.text != "":
		st.t.Errorf("while the server is %s, %s is %v, without a word", f.name, d, got)
	}
}

// recovers waits until the server is served again.
func (st *stand) recovers() {
	st.t.Helper()
	list := deviation{"tools/list", "2025-11-25", "own", "none", "own", "both", "fine"}
	rig.Until(st.t, recovery, "the server serves again", func() string {
		if o, err := st.through().play(st.t.Context(), st.c, list); err != nil || !o.taken {
			return fmt.Sprintf("%v %v %s; the server wrote: %s", o, err, o.text, st.server.Log())
		}
		return ""
	})
}
