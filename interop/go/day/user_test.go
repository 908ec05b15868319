package day

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
)

// A user is one client, what it does, and what it must find.
type user struct {
	*pair
	t     *testing.T
	stand *stand
	r     *rand.Rand
	m     *model
	c     *steer.Client

	lost    bool      // the process has ended, and nobody has told
	mayTell bool      // a process has ended, and a result may tell
	deaf    bool      // the process is new: the client has not subscribed since
	settled time.Time // when a subscription is in force: go-sdk does not wait for that
	trail   []string  // what was done
	seldom  map[string]int
}

func newUser(t *testing.T, s *stand, p pair, r *rand.Rand) *user {
	u := &user{pair: &p, t: t, stand: s, r: r, m: newModel(), seldom: make(map[string]int)}
	u.open()
	return u
}

// spend takes so many steps, and closes the session.
func (u *user) spend(steps int) {
	defer func() { u.c.Kill() }()
	for range steps {
		s := choose(u.r, u.kind)
		u.note("%v", s)
		u.take(s)
	}
	u.note("close")
	u.close()
	if err := u.c.End(); err != nil {
		u.fail("ending: %v", err)
	}
}

func (u *user) take(s step) {
	if u.deaf {
		u.subscribe()
	}
	switch s.do {
	case "call", "read":
		u.judge(s, patience)
	case "list":
		u.list()
	case "pause":
		u.sleep(u.between(idle, 2*idle), 6*time.Minute)
	case "die":
		u.die()
	case "kill":
		u.kill()
	case "stop-server":
		u.stopped(u.server())
	case "stop-client":
		u.server()
		u.stopped(u.c.Pid())
	case "reconnect":
		u.reconnect()
	case "vanish":
		u.vanish()
	}
}

// start starts a client, if there is none.
func (u *user) start() {
	if u.c != nil {
		return
	}
	var err error
	if u.c, err = steer.Start(bin("client-" + sdkOf[u.client])); err != nil {
		u.t.Fatal(err)
	}
}

// open starts a client, if there is none, and its session.
func (u *user) open() {
	if err := u.connect(); err != nil {
		u.fail("connecting: %v", err)
	}
}

func (u *user) connect() error {
	u.start()
	if _, err := u.request("initialize", u.stand.target(*u.pair)); err != nil {
		return err
	}
	u.subscribe()
	return nil
}

func (u *user) subscribe() {
	if u.kind != "tick" {
		return
	}
	now := map[string]string{"uri": "tick://now"}
	if u.deaf && u.client == "modern" { // or the SDK takes it for subscribed
		if _, err := u.request("resources/unsubscribe", now); err != nil {
			u.fail("unsubscribing: %v", err)
		}
	}
	begun := time.Now()
	if _, err := u.request("resources/subscribe", now); err != nil {
		u.fail("subscribing: %v", err)
	}
	u.deaf = false
	u.settles(time.Since(begun))
}

func (u *user) close() {
	if _, err := u.request("close", nil); err != nil && !u.lost {
		u.fail("closing: %v", err)
	}
}

// patience is how long a client waits for an answer.
const patience = 3 * time.Minute

// settles notes when a subscription is in force: a second from now or, where a request takes long, after
// the time of ten.
func (u *user) settles(request time.Duration) {
	u.settled = time.Now().Add(max(time.Second, 10*request))
}

func (u *user) request(method string, params any) (any, error) {
	return u.requestWithin(patience, method, params)
}

func (u *user) requestWithin(d time.Duration, method string, params any) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.t.Context()), d) // it closes sessions at the end, too
	defer cancel()
	return u.c.Request(ctx, method, params)
}

func (u *user) ask(s step, within time.Duration) (any, error) {
	switch s.do {
	case "list":
		return u.requestWithin(within, "tools/list", nil)
	case "read":
		return u.requestWithin(within, "resources/read", map[string]string{"uri": "tick://now"})
	}
	return u.requestWithin(within, "tools/call", call(s.tool, s.args))
}

func call(tool string, args map[string]string) any {
	if args == nil {
		args = map[string]string{}
	}
	return map[string]any{"name": tool, "arguments": args}
}

// list asks for something without a state, of which a copy may be kept.
func (u *user) list() {
	s := step{do: "list"}
	got, err := u.ask(s, patience)
	switch {
	case err != nil && u.lost:
		u.note("told: %v", err)
		u.restart()
		u.renewIfBroken()
	case err != nil:
		u.fail("%v: %v", s, err)
	default:
		u.tell(s, got)
	}
}

// renewIfBroken opens another session if this one does not answer.
func (u *user) renewIfBroken() {
	if _, err := u.request("tools/list", nil); err == nil {
		return
	}
	if _, err := u.again(step{do: "list"}, patience); err != nil {
		u.fail("after the end of its server: %v", err)
	}
}

// server returns the process id of the server, as it says itself. What was lost before is
// told then.
func (u *user) server() int {
	got := u.judge(step{do: "call", tool: "pid"}, patience)
	pid, err := strconv.Atoi(text(got))
	if err != nil {
		u.fail("pid: %s", brief(got))
	}
	return pid
}

// die has the server end without an answer: the error tells.
func (u *user) die() {
	u.server()
	if got, err := u.ask(step{do: "call", tool: "die"}, patience); err == nil {
		u.fail("the server has died, and the answer is %s", brief(got))
	}
	u.restart()
	u.renewIfBroken()
}

// kill ends the process between two calls.
func (u *user) kill() {
	pid := u.server()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		u.fail("killing the server's process %d: %v", pid, err)
	}
	u.lost, u.mayTell = true, true
	u.sleep(u.between(0, 300*time.Millisecond), 0)
}

// stopped stops a process, asks, and has it go on.
func (u *user) stopped(pid int) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		u.fail("stopping %d: %v", pid, err)
	}
	d := u.between(time.Second, 2*time.Second)
	if full() && u.first("stop") < 2 {
		d = 150 * time.Second
	}
	goesOn := make(chan struct{})
	time.AfterFunc(d, func() {
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
		close(goesOn)
	})
	if time.Now().Before(u.settled) { // the subscription may still be on its way
		u.settled = u.settled.Add(d)
	}
	s := use(u.r, u.kind)
	u.note("while stopped: %v", s)
	u.judge(s, d+patience)
	<-goesOn // it may have answered before it stopped
}

// reconnect ends the session as the SDK does, and opens another soon.
func (u *user) reconnect() {
	u.close()
	u.endSession()
	u.sleep(u.between(100*time.Millisecond, time.Second), 10*time.Second)
	u.open()
}

// vanish kills the client. Another comes when the process that saw the end of its input has
// ended.
func (u *user) vanish() {
	u.c.Kill()
	u.c = nil
	u.endSession()
	u.sleep(u.between(1500*time.Millisecond, 3*time.Second), 10*time.Second)
	if u.way != "serve" {
		rig.Until(u.t, time.Minute, "the server has ended, as its client has", noneWith(u.stand.folder(*u.pair)))
	}
	u.open()
}

// endSession keeps what the end of a session does. A new session of a legacy client is told of
// no loss before it, but of one that is noticed after its first request.
func (u *user) endSession() {
	switch {
	case !u.keeps():
		u.ended()
	case u.lost && u.client == "legacy":
		u.restart()
	}
}

// ended is what the end of a session does to the server's process.
func (u *user) ended() {
	if u.lost {
		u.m.lost()
	} else {
		u.m.closed()
	}
	u.lost, u.mayTell = false, false
}

// first counts what is long and so done a few times only.
func (u *user) first(what string) int {
	u.seldom[what]++
	return u.seldom[what] - 1
}

// sleep is a pause; in the full form, one of each sort is long.
func (u *user) sleep(d, long time.Duration) {
	if full() && long > 0 && u.first(long.String()) == 0 {
		d = long
	}
	u.note("%v", d)
	time.Sleep(d)
}

func (u *user) between(least, most time.Duration) time.Duration {
	return least + time.Duration(u.r.Int64N(int64(most-least)))
}

func (u *user) note(format string, args ...any) {
	u.trail = append(u.trail, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// fail says what was done last, and what the client and mcpbridge wrote.
func (u *user) fail(format string, args ...any) {
	u.t.Helper()
	last := u.trail[max(0, len(u.trail)-12):]
	log := ""
	if u.c != nil {
		log = u.c.Log()
	}
	u.t.Fatalf("%s\nstep %d; the last were:\n%s\nwritten:\n%s", fmt.Sprintf(format, args...), len(u.trail), strings.Join(last, "\n"), log)
}
