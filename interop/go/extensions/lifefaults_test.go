package extensions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A lifeFault is something that goes wrong for a while, with one server or with mcpbridge.
type lifeFault struct {
	name string
	take func(w *lifeWorld, server string) // returns when it is over
	// fates are what becomes of a task that was made before, for each pair. Those of pairs whose
	// server nothing happened to go on.
	fates map[string]string
	all   bool // it happens to all pairs
	calm  bool // everything works meanwhile, only later
}

const (
	goesOn    = "it goes on"
	isUnknown = "error -32602"
	restarted = "error -32602 that tells of the restart"
	hasFailed = "it has failed, with an error that names the server"
)

// ofRestarts are the fates of tasks when mcpbridge is started anew: sessions end with it, and with
// them what a server of 2025-11-25 keeps in each.
var ofRestarts = map[string]string{"old to old": isUnknown, "new to old": restarted}

var lifeFaults = []*lifeFault{
	{name: "slow", calm: true, take: func(w *lifeWorld, server string) {
		w.ways[server].delay.Store(200)
		time.Sleep(4 * time.Second)
		w.ways[server].delay.Store(0)
	}},
	{name: "away", take: func(w *lifeWorld, server string) {
		w.ways[server].refuse()
		time.Sleep(3 * time.Second)
		w.ways[server].listen(w.t)
	}},
	{name: "killed", fates: map[string]string{"old to old": isUnknown, "old to new": isUnknown, "new to old": hasFailed, "new to new": isUnknown}, take: func(w *lifeWorld, server string) {
		w.servers[server].kill()
		w.servers[server].start(w.t)
	}},
	{name: "behind an mcpbridge that is stopped", all: true, fates: ofRestarts, take: func(w *lifeWorld, _ string) {
		_ = w.bridge.Stop(time.Minute) // it says so if it has cut off who waits for a result
		w.bridge = programs.StartBridge(w.t, w.config, w.admin)
	}},
	{name: "behind an mcpbridge that is killed", all: true, fates: ofRestarts, take: func(w *lifeWorld, _ string) {
		w.bridge.Kill()
		w.bridge = programs.StartBridge(w.t, w.config, w.admin)
	}},
}

// held are the tasks that were made before a fault.
func heldLives(seed uint64) []*life {
	return []*life{
		{label: fmt.Sprintf("held-%d-0", seed), tool: "slow_compute", arguments: fmt.Sprintf(`{"seconds": 600, "label": "held-%d-0"}`, seed), endless: true},
		{label: fmt.Sprintf("held-%d-1", seed), tool: "confirm_delete", arguments: fmt.Sprintf(`{"filename": "held-%d-1"}`, seed), asks: 1, reply: "accept"},
		{label: fmt.Sprintf("held-%d-2", seed), tool: "slow_compute", arguments: fmt.Sprintf(`{"seconds": 2, "label": "held-%d-2"}`, seed)},
	}
}

// playFault has something happen to a server, or to mcpbridge, under tasks that are held and lives
// that are played.
func (w *lifeWorld) playFault(f *lifeFault, server string, seed uint64) {
	what := fmt.Sprintf("while the server %s is %s", server, f.name)
	held := make(map[*lifePair][]*living)
	for _, p := range w.pairs {
		for _, l := range heldLives(seed) {
			v := p.players[0].play(w.t.Context(), l.as(p.name+what), nil)
			if v.id == "" {
				w.t.Errorf("%s, %s: no task can be held: %v", what, p.name, v.events)
				return
			}
			held[p] = append(held[p], v)
		}
		held[p][1].until("input_required")
	}
	w.under(f, server, what, seed)
	var judges sync.WaitGroup
	for _, p := range w.pairs {
		hit := f.all || p.server() == server
		judges.Go(func() {
			if hit && f.name != "away" && !f.calm {
				for _, player := range p.players {
					player.connect(w.t)
				}
			}
			fate := goesOn
			if hit && f.fates[p.alone()] != "" {
				fate = f.fates[p.alone()]
			}
			for _, v := range held[p] {
				if text := v.judge(fate, p.server()); text != "" {
					w.t.Errorf("%s, %s, the held task of %s %s, of which is wanted that %s: %s", what, p.name, v.tool, v.arguments, fate, text)
				}
			}
		})
	}
	judges.Wait()
	w.faults++
}

// under plays lives while a fault happens.
func (w *lifeWorld) under(f *lifeFault, server, what string, seed uint64) {
	lives := drawLives(seed, kindsOfLives)
	wants := w.wants(lives)
	hit, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	var playing sync.WaitGroup
	for _, p := range w.pairs {
		playing.Go(func() { // ends with the lives
			ctx := w.t.Context()
			if f.all || p.server() == server {
				ctx = hit
			}
			got := playAll(ctx, p.name+what, p.players, lives, wants[p.old])
			for i, l := range lives {
				if f.calm || !f.all && p.server() != server {
					p.compare(w.t, what, l, got[i], wants[p.old][i])
				} else {
					p.tolerate(w.t, what, l, got[i], wants[p.old][i])
				}
			}
		})
	}
	time.Sleep(time.Duration(w.rng.IntN(500)) * time.Millisecond)
	f.take(w, server)
	if !f.calm { // clients can wait for what was lost with its connection
		late := time.AfterFunc(5*time.Second, cancel)
		defer late.Stop()
	}
	playing.Wait()
}

// tolerate holds what was seen while something was wrong: errors, and otherwise what is seen
// directly, but for tasks that have failed.
func (p *lifePair) tolerate(t *testing.T, what string, l *life, got, direct []event) {
	t.Helper()
	want := p.expect(l, direct)
	if p.mediated() {
		got = alikeEvents(l, got)
	}
	astray := false // a step has failed, so that the task is not as far as it is otherwise
	for _, e := range got {
		astray = astray || e.failed()
		ok := e.failed() || slices.Contains(want, e) || astray && (strings.Contains(e.text, " input_required ") || strings.Contains(e.text, " cancelled "))
		switch e.step {
		case "tally": // another process counts anew
			ok = ok || e.text == "[{text 0}]"
		case "look", "asking", "cancelled", "settle", "create": // a task was lost, or a status is another's time
			ok = ok || strings.Contains(e.text, " failed ") || strings.Contains(e.text, "error -3260") || strings.Contains(e.text, "-> error ")
			ok = ok || e.step != "settle" && !strings.Contains(e.text, "elicitation") // that something was not as far as it is otherwise
		case "told":
			ok = true
		}
		if !ok {
			t.Errorf("%s, %s, %s %s %s %v:\nit is %v\n  want %v", what, p.name, l.tool, l.arguments, l.reply, l.steps, e, want)
		}
	}
}

// judge says what is wrong with a task after a fault.
func (v *living) judge(fate, server string) string {
	first := v.look()
	switch fate {
	case isUnknown, restarted:
		if !strings.HasPrefix(first, "error -32602") || strings.Contains(first, "restart") != (fate == restarted) {
			return first
		}
		return v.notAgain()
	case hasFailed:
		if !strings.Contains(first, "failed") {
			first = v.look()
		}
		if again := v.look(); !strings.Contains(first, " failed ") || !strings.Contains(first, "error -32603") || !strings.Contains(first, fmt.Sprintf("%q", server)) || again != first {
			return first + ", and then " + again
		}
		return v.notAgain()
	}
	switch {
	case v.asks > 0:
		if text := v.settle(); !strings.Contains(text, "deleted "+v.label) {
			return text
		}
	case v.endless:
		if v.status != "working" {
			return first
		}
		v.request("tasks/cancel", fmt.Sprintf(`"taskId": %q`, v.id))
		if text := v.until("cancelled"); v.status != "cancelled" {
			return text
		}
	default:
		if text := v.settle(); !strings.Contains(text, "computed "+v.label) {
			return text
		}
		if text := v.tally(); text != "[{text 1}]" {
			return "it was run " + text
		}
	}
	return ""
}

// notAgain says so if the tool was run again, in the process that came after.
func (v *living) notAgain() string {
	if text := v.tally(); v.tool == "slow_compute" && strings.Contains(text, "text 2") {
		return "it was run again: " + text
	}
	return ""
}

// TestT01T04T09T20Lives plays random lives of tasks on a direct connection and through mcpbridge, with
// all four pairs of eras at once. Then something goes wrong: mcpbridge is killed, or, for LIVES seconds,
// each fault in turn, with more lives in between.
func TestT01T04T09T20Lives(t *testing.T) {
	seed, seconds := rig.Seed(t), rig.Int(t, "LIVES", 0)
	w := newLifeWorld(t, seed)
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	w.playRound(seed, 2*kindsOfLives, "with nothing amiss")
	faults := lifeFaults
	if seconds == 0 {
		faults = faults[len(faults)-1:]
	}
	for i := uint64(1); i == 1 || time.Now().Before(end); i++ {
		for j, f := range faults {
			server := []string{"old", "new"}[w.rng.IntN(2)]
			w.playFault(f, server, seed+100*i+uint64(j))
			if seconds > 0 {
				w.playRound(seed+100*i+50+uint64(j), 2*kindsOfLives, "after the server "+server+" was "+f.name)
			}
		}
	}
	t.Logf("%d lives in each pair, %d faults", w.lives, w.faults)
}

// TestT16T21KilledUnderManyTasks kills the servers of both eras under 200 live tasks of each pair. Within
// two looks each is told what became of it, always alike, and none is run again.
func TestT16T21KilledUnderManyTasks(t *testing.T) {
	w := newLifeWorld(t, rig.Seed(t))
	killed := lifeFaults[slices.IndexFunc(lifeFaults, func(f *lifeFault) bool { return f.name == "killed" })]
	held := make(map[*lifePair][]*living)
	for _, p := range w.pairs {
		held[p] = make([]*living, 200)
		err := rig.Each(len(held[p]), 16, func(i int) error {
			l := heldLives(uint64(i))[0]
			held[p][i] = p.players[i%len(p.players)].play(t.Context(), l.as(p.name), nil)
			if held[p][i].id == "" {
				return fmt.Errorf("%s: no task can be held: %v", p.name, held[p][i].events)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range w.servers {
		killed.take(w, name)
	}
	for _, p := range w.pairs {
		for _, player := range p.players {
			if p.old && p.oldServer { // its session was the server's
				player.connect(t)
			}
		}
		err := rig.Each(len(held[p]), 16, func(i int) error {
			if text := held[p][i].judge(killed.fates[p.alone()], p.server()); text != "" {
				return fmt.Errorf("%s: a task of a server that was killed is %s, want that %s", p.name, text, killed.fates[p.alone()])
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
