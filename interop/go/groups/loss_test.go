package groups

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/ledger"
	"github.com/mcpbridge/mcpbridge/interop/internal/listen"
	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// longHang is longer than anything waits for a member that hangs.
const longHang = 70 * time.Second

// recovery is what anything may take to be in order again.
const recovery = 3 * time.Minute

// A mortal is a member that is killed, hung and started anew.
type mortal struct {
	name string
	argv []string
	addr string
	uri  string // that clients follow
	*process.Process
}

// begin starts it, with one more tool if that has a name.
func (m *mortal) begin(t *testing.T, tool string) {
	t.Helper()
	var err error
	if m.Process, err = process.Start(m.name, nil, append(slices.Clone(m.argv), "-tool", tool)...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), recovery)
	defer cancel()
	if err := m.Ready(ctx, "http://"+m.admin()+"/admin/subscriptions", http.StatusOK); err != nil {
		t.Fatal(err)
	}
}

// admin returns where it is told what to do.
func (m *mortal) admin() string { return m.argv[len(m.argv)-1] }

// signal sends the process a signal.
func (m *mortal) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(m.Pid(), s); err != nil {
		t.Fatal(err)
	}
}

// A loss is a world of one group of two members, of each era, whose clients follow a resource of
// each and the list of tools.
type loss struct {
	t         *testing.T
	members   [2]*mortal
	bridge    *bridge
	us        *http.Client
	followers []follower
	visitors  []*visitor
	random    *rand.Rand
	lasting   *handCaller // a legacy session with the group
	courses   courses
}

// A follower is a client of the group that follows topics.
type follower interface {
	// told reports whether it was told of a topic at or after a time, Unix time in nanoseconds.
	told(topic string, since int64) bool
	// fault says what is wrong with it; empty for nothing.
	fault() string
}

// TestG13LossOfMembers has members killed, hung and started anew with other tools, under calls, under
// subscriptions of legacy sessions and under listen streams: what those that live tell is not
// lost, what the lost one had is back when it is, and nothing of a client ends.
func TestG13LossOfMembers(t *testing.T) {
	n, followers := int(rig.Int(t, "LOSSES", 5)), int(rig.Int(t, "FOLLOWERS", 12))
	w := newLoss(t, followers)
	for i := range n {
		// The first ones are one of each kind, so that CI has all.
		victim, blow := i%2, i/2%3
		if i >= 6 {
			victim, blow = w.random.IntN(2), w.random.IntN(3)
		}
		w.once(i, w.members[victim], w.members[1-victim], blow)
		if t.Failed() {
			return
		}
		if done := i + 1; done%10 == 0 || done == n {
			t.Logf("%d losses under %d clients, with calls of the members that lived; through the group: %v; at their own endpoints: %v; through the group by SDKs: %v",
				done, len(w.followers), &w.courses.group, &w.courses.own, &w.courses.sdks)
		}
	}
	if n >= 100 {
		w.courses.judge(t)
	}
}

func newLoss(t *testing.T, followers int) *loss {
	w := &loss{t: t, us: &http.Client{Timeout: answerTime, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}, random: rand.New(rand.NewPCG(rig.Seed(t), 1))}
	t.Cleanup(w.us.CloseIdleConnections)
	dir := t.TempDir()
	var servers strings.Builder
	for i, m := range []*mortal{{name: "old", argv: []string{peer("bin/legacy-go")}, uri: "res://item/00"}, {name: "new", argv: []string{peer("bin/modern-go")}, uri: "res://item/000"}} {
		m.addr = rig.FreeAddr(t)
		m.argv = append(m.argv, "-http", m.addr, "-ledger", filepath.Join(dir, m.name), "-admin", rig.FreeAddr(t))
		m.begin(t, "")
		t.Cleanup(func() { m.Kill() })
		w.members[i] = m
		fmt.Fprintf(&servers, "  %s: {url: \"http://%s/mcp\", timeouts: {connect: 1m}}\n", m.name, m.addr)
	}
	w.bridge = startBridge(t, servers.String(), "  both: {servers: [old, new], patience: 1s}\n")
	w.lasting = &handCaller{us: w.us, url: w.bridge.at("both"), legacy: true}
	if err := w.lasting.open(); err != nil {
		t.Fatal(err)
	}
	w.follow(followers, dir)
	return w
}

// follow starts so many followers: one of each SDK, more of the oldest one, and listen streams.
func (w *loss) follow(n int, dir string) {
	w.t.Helper()
	sdks := clients()
	for range n/3 - len(sdks) {
		sdks = append(sdks, client{"go-1.6.1", []string{peer("bin/client-go161")}, "2025-11-25"})
	}
	for _, c := range sdks {
		w.followers = append(w.followers, w.startFollower(c, dir))
	}
	for i := len(sdks); i < n; i++ {
		s, err := listen.Dial(listen.Request{
			Addr: w.bridge.listen, Server: "both", Meta: `"_meta":` + modernMeta, ID: fmt.Sprint(i),
			Want: listen.FilterOf(listen.Tools, w.members[0].uri, w.members[1].uri),
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(s.Close)
		if err := s.Wait(recovery); err != nil {
			w.t.Fatal(err)
		}
		if ack, _ := s.Ack(); len(ack.Topics()) != 3 {
			w.t.Fatalf("a stream was acknowledged %v, want the tools and both resources", ack)
		}
		w.followers = append(w.followers, streamFollower{s})
	}
}

const modernMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// A streamFollower is a listen stream that is read by hand.
type streamFollower struct{ *listen.Stream }

func (f streamFollower) told(topic string, since int64) bool { return f.Told(topic, since) }

func (f streamFollower) fault() string {
	if ending, problems := f.Status(); ending != listen.Open || len(problems) > 0 {
		return fmt.Sprintf("a listen stream is %s: %q", ending, problems)
	}
	return ""
}

// An sdkFollower is a client on an SDK that has subscribed.
type sdkFollower struct {
	*visitor
	mu      sync.Mutex       // guards the fields below
	heard   map[string]int64 // when, by topic
	logged  map[string]int   // how often, by the text of log messages outside of calls
	opened  int              // requests that open a session or a stream, at the start
	started bool
}

func (w *loss) startFollower(c client, dir string) *sdkFollower {
	w.t.Helper()
	f := &sdkFollower{visitor: startVisitor(w.t, c, w.bridge, dir, nil), heard: make(map[string]int64), logged: make(map[string]int)}
	w.visitors = append(w.visitors, f.visitor)
	f.open(f.httpTarget("both"))
	for _, m := range w.members {
		if _, err := f.ask("resources/subscribe", map[string]any{"uri": m.uri}, false); err != nil {
			w.t.Fatalf("%s: subscribing to %s: %v", c.name, m.uri, err)
		}
	}
	if !c.modern() {
		if _, err := f.ask("logging/setLevel", map[string]any{"level": "warning"}, false); err != nil {
			w.t.Fatalf("%s: setting the log level: %v", c.name, err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var listening sync.WaitGroup
	listening.Go(func() { f.hear(ctx) }) // both end with the test
	listening.Go(func() { f.hearMessages(ctx) })
	w.t.Cleanup(func() { stop(); listening.Wait() })
	return f
}

// hear writes down what arrives.
func (f *sdkFollower) hear(ctx context.Context) {
	for ctx.Err() == nil {
		if topic, ok := f.Changed.Take(100 * time.Millisecond); ok {
			f.mu.Lock()
			f.heard[topic] = time.Now().UnixNano()
			f.mu.Unlock()
		}
	}
}

// hearMessages counts log messages.
func (f *sdkFollower) hearMessages(ctx context.Context) {
	for ctx.Err() == nil {
		m, ok := f.Messages.Take(100 * time.Millisecond)
		if params, isObject := m.(map[string]any); ok && isObject && params["logger"] == "old/board" {
			f.mu.Lock()
			f.logged[fmt.Sprint(params["data"])]++
			f.mu.Unlock()
		}
	}
}

func (f *sdkFollower) told(topic string, since int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard[topic] >= since
}

// fault finds sessions and streams that were opened anew.
func (f *sdkFollower) fault() string {
	opened := 0
	for _, p := range f.tap.Passed() {
		if p.Up && (strings.Contains(p.Text, `"method":"initialize"`) || strings.Contains(p.Text, `"method":"subscriptions/listen"`)) {
			opened++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.started {
		f.started, f.opened = true, opened
	}
	if opened != f.opened || f.Ended() {
		return fmt.Sprintf("%s has opened %d sessions and streams since, or has ended (%v)", f.name, opened-f.opened, f.Ended())
	}
	return ""
}

// touch has a member change its resource, and returns when that began.
func (w *loss) touch(m *mortal) int64 {
	w.t.Helper()
	at := time.Now().UnixNano()
	if _, err := (ledger.Admin{Client: w.us, Addr: m.admin()}).Touch(1, m.uri); err != nil {
		w.t.Fatalf("touching %s: %v", m.uri, err)
	}
	return at
}

// wantLogged has the legacy member log outside of calls, and waits until all legacy clients have
// heard it once: what is of the level that they have set, and nothing else.
func (w *loss) wantLogged(text, what string) {
	w.t.Helper()
	old := ledger.Admin{Client: w.us, Addr: w.members[0].admin()}
	for _, level := range []string{"info", "error"} {
		if err := old.Tell(http.MethodPost, "log", url.Values{"level": {level}, "text": {level + " " + text}}, new(struct{})); err != nil {
			w.t.Fatalf("logging: %v", err)
		}
	}
	rig.Until(w.t, recovery, what, func() string {
		for _, f := range w.followers {
			s, ok := f.(*sdkFollower)
			if !ok || s.modern() {
				continue
			}
			s.mu.Lock()
			heard, more := s.logged["error "+text], s.logged["info "+text]
			s.mu.Unlock()
			if heard != 1 || more != 0 {
				return fmt.Sprintf("%s heard a message %d times, and %d times one that it does not want", s.name, heard, more)
			}
		}
		return ""
	})
}

// wantTold waits until all followers were told of a topic.
func (w *loss) wantTold(topic string, since int64, what string) {
	w.t.Helper()
	rig.Until(w.t, recovery, what, func() string {
		for i, f := range w.followers {
			if !f.told(topic, since) {
				name := "a listen stream"
				if s, ok := f.(*sdkFollower); ok {
					name = s.name
				}
				return fmt.Sprintf("client %d, %s, was not told of %s", i, name, topic)
			}
		}
		return ""
	})
}

// The kinds of blows.
const (
	killed = iota
	hung
	otherTools
)

// once loses one member, and gets it back.
func (w *loss) once(i int, victim, other *mortal, blow int) {
	t := w.t
	t.Helper()
	w.wantTold(victim.uri, w.touch(victim), "an update before the loss")
	w.wantLogged(fmt.Sprintf("before %d", i), "a log message before the loss")
	for _, f := range w.followers {
		if why := f.fault(); why != "" {
			t.Fatal(why)
		}
	}
	stop := w.callAll(other)
	switch blow {
	case hung:
		victim.signal(t, syscall.SIGSTOP)
	default:
		victim.Kill()
		w.us.CloseIdleConnections()
	}
	end := time.Now()
	if blow == hung && i%8 == 7 { // not in CI
		end = end.Add(longHang)
	}
	for n := 1 + w.random.IntN(3); n > 0 || time.Now().Before(end); n-- {
		w.wantTold(other.uri, w.touch(other), "an update of the member that lives")
	}
	if other == w.members[0] {
		w.wantLogged(fmt.Sprintf("during %d", i), "a log message of the member that lives")
	}
	w.wantTools(other.name+"__mark", "the tools of the member that lives")
	tool, begun := "", time.Now().UnixNano()
	switch blow {
	case hung:
		victim.signal(t, syscall.SIGCONT)
	case otherTools:
		tool = fmt.Sprintf("other-%d", i)
		fallthrough
	default:
		victim.begin(t, tool)
		w.wantTold(victim.uri, begun, "the resource of a member that was lost is told as changed")
		w.wantTold(listen.Tools, begun, "the tools of a member that was lost are told as changed")
	}
	w.wantTold(victim.uri, w.touch(victim), "an update after the loss")
	if victim == w.members[0] {
		w.wantLogged(fmt.Sprintf("after %d", i), "the log level at the member that was lost, without a call")
	}
	w.wantTools(victim.name+"__mark", "the tools of the member that was lost")
	if tool != "" {
		w.wantTools(victim.name+"__"+tool, "the other tools of the member that was lost")
	}
	stop()
	for _, f := range w.followers {
		if why := f.fault(); why != "" {
			t.Error(why)
		}
	}
}

// listsAtOnce is how many clients list at once: a list waits for a member that hangs.
const listsAtOnce = 16

// wantTools waits until all SDKs' clients list a tool.
func (w *loss) wantTools(tool, what string) {
	w.t.Helper()
	missing := w.visitors
	rig.Until(w.t, recovery, what, func() string {
		why := make([]string, len(missing))
		_ = rig.Each(len(missing), listsAtOnce, func(i int) error { why[i] = missing[i].lacks(tool); return nil }) // no error
		var still []*visitor
		text := ""
		for i, v := range missing {
			if why[i] != "" {
				still, text = append(still, v), v.name+": "+why[i]
			}
		}
		missing = still
		return text
	})
}

// lacks says why the list of tools has not one of a name; empty if it has.
func (v *visitor) lacks(tool string) string {
	items, err := v.pages("tools/list", "tools")
	if err != nil {
		return err.Error()
	}
	for _, item := range items {
		if item.(map[string]any)["name"] == tool {
			return ""
		}
	}
	return fmt.Sprintf("none of %d is %s", len(items), tool)
}
