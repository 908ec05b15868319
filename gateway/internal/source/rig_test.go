package source_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/hub"
	"github.com/mcpbridge/mcpbridge/gateway/internal/source"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

const info = `{"name":"mcpbridge","version":"test"}`

// A rig has replicas with one server. It runs in a bubble.
type rig struct {
	t      *testing.T
	broker *replicastest.Broker
	server *modernServer
	by     map[string]*replica
	claims func(name string) source.Names             // of a replica; nil for the usual ones
	asked  func(*replicastest.Engine) replicas.Engine // nil for the engine itself
	limits limits.Set                                 // on what clients send; set before anything is asked
	memory mcp.Memory                                 // for requests of other replicas, of those that are added from now on; nil: unbounded

	mu     sync.Mutex
	cuts   map[[2]string]bool // who does not reach whom
	stalls map[[2]string]bool // whose requests of whom carry nothing
	open   map[[2]string][]context.CancelFunc
	takes  func() time.Duration // for each message between replicas; nil: none
	meet   bool                 // replicas ask each other without the engine
	mute   string               // the replica that writes no heartbeats of others
	gone   string               // the replica in whose place another one answers
}

func newRig(t *testing.T, names ...string) *rig {
	return newRigOf(t, nil, nil, names...)
}

// newRigOf returns a rig whose replicas claim other names, or have another engine.
func newRigOf(t *testing.T, claims func(string) source.Names, asked func(*replicastest.Engine) replicas.Engine, names ...string) *rig {
	r := &rig{t: t, claims: claims, asked: asked, broker: replicastest.New(), server: startServer(t), by: make(map[string]*replica), cuts: make(map[[2]string]bool), stalls: make(map[[2]string]bool), open: make(map[[2]string][]context.CancelFunc)}
	for _, name := range names {
		r.add(name)
	}
	synctest.Wait()
	return r
}

// A replica has what a gateway has for one server.
type replica struct {
	rig      *rig
	name     string
	engine   *replicastest.Engine
	hub      *hub.Hub
	group    *source.Group
	source   *source.Source
	endpoint *source.Endpoint
	streams  downstream.Streams
	srv      *http.Server
	l        *bridgetest.Listener
	rt       *http.Transport
	own      mcp.Back
	differs  bool                                    // its profiles are not those of others
	answers  func(*mcp.Request) (*mcp.Result, error) // what is asked of the server for others; nil has the server do so
	killed   sync.Once
}

func (r *rig) add(name string) *replica {
	rep := &replica{rig: r, name: name, l: bridgetest.Listen()}
	rep.rt = rep.l.Transport()
	rep.hub = hub.New(hub.Options{Logger: slog.New(slog.DiscardHandler), Metrics: mcp.NoMetrics{},
		Until: func(*mcp.Identity, func(error)) func() { return func() {} }})
	rep.hub.Bound(100_000, 100_000)
	rep.engine = r.broker.Unjoined(r.t)
	if r.meet {
		rep.engine.Meet(neighbors{rep})
	}
	if err := rep.engine.Join(r.t.Context(), replicas.Replica{Instance: name, Addr: name + ":2528", Version: "test", Revision: replicas.Revision}); err != nil {
		r.t.Fatal(err)
	}
	made := server.New(server.Options{Options: upstream.Options{Settings: settings.Server{Era: "modern"}, Name: "files", URL: "http://files.test/mcp", RoundTripper: r.server.transport(r.t), ClientInfo: json.RawMessage(info)}})
	engine, claims := replicas.Engine(rep.engine), source.Names{Server: "files"}
	if r.asked != nil {
		engine = r.asked(rep.engine)
	}
	if r.claims != nil {
		claims = r.claims(name)
	}
	rep.group = source.NewGroup(source.Options{
		Engine:       engine,
		URL:          func(to replicas.Replica, path string) string { return "http://" + to.Addr + path },
		RoundTripper: rep.reach,
	})
	rep.source = rep.group.Open(source.ServerOptions{
		Name: "files", Claims: claims, Open: made.OpenPeer, Changes: rep.hub, Local: rep.hub.Local(), Cues: rep.hub.Local(), WantedByPeers: rep.hub.WantedByPeers,
	})
	var err error
	if rep.own, err = made.Open(rep.source.Changes()); err != nil {
		r.t.Fatal(err)
	}
	rep.source.Use(rep.own)
	rep.endpoint, err = source.NewEndpoint(source.EndpointOptions{Server: here{served{rep}}, Hub: rep.hub, Handler: answering{rep}, Describer: rep.own, Profiles: rep.profiles, Limits: func() limits.Set { return r.limits }, Memory: r.memory, Streams: &rep.streams})
	if err != nil {
		r.t.Fatal(err)
	}
	rep.srv = &http.Server{Handler: rep}
	go func() { _ = rep.srv.Serve(rep.l) }() // ends with Close
	r.by[name] = rep
	r.t.Cleanup(rep.kill)
	return rep
}

// ServeHTTP is the peer listener.
func (rep *replica) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/peer/hello" {
		return
	}
	p := mcp.Principal(r.Header.Get("X-Principal"))
	rep.endpoint.Serve(w, r, mcp.Sender{Share: mcp.Share{Principal: p}})
}

// profiles returns the profile of a listen request.
func (rep *replica) profiles(req *mcp.Request) []mcp.Profile {
	return []mcp.Profile{rep.profile(req.Principal, req.Capabilities)}
}

// profile returns a profile as the gateway computes it.
func (rep *replica) profile(p mcp.Principal, capabilities []byte) mcp.Profile {
	scope := "files@" + rep.name + "/" + string(p) + string(capabilities)
	if rep.differs {
		scope += "other"
	}
	return mcp.Profile{Scope: scope, Principal: p, Capabilities: capabilities}
}

// answering answers for other replicas.
type answering struct{ *replica }

// Serve implements [mcp.Handler].
func (a answering) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	if a.answers == nil {
		return a.own.Serve(ctx, req, c)
	}
	return a.answers(req)
}

type network struct {
	from   *replica
	to     replicas.Replica
	sender func(*http.Request) mcp.Sender
}

func (rep *replica) reach(to replicas.Replica, sender func(*http.Request) mcp.Sender) http.RoundTripper {
	return &network{rep, to, sender}
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	rig, cut := n.from.rig, [2]string{n.from.name, n.to.Instance}
	rig.mu.Lock()
	isCut := rig.cuts[cut]
	rig.mu.Unlock()
	if isCut {
		return nil, errors.New("the network is cut")
	}
	if r.Header.Get("Authorization") != "" {
		return nil, errors.New("the principal's header left the process")
	}
	ctx, cancel := context.WithCancel(r.Context()) // by breakStreams
	rig.mu.Lock()
	rig.open[cut] = append(rig.open[cut], cancel)
	rig.mu.Unlock()
	out := r.Clone(ctx)
	out.Header.Set("X-Principal", string(n.sender(r).Principal))
	if rig.isStalled(cut) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	res, err := rig.by[n.to.Instance].rt.RoundTrip(out)
	if err == nil {
		res.Body = &stallingBody{&slowBody{res.Body, rig}, ctx, func() bool { return rig.isStalled(cut) }}
	}
	return res, err
}

func (r *rig) isStalled(way [2]string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stalls[way]
}

// stall has what a replica asks of another carry nothing any more.
func (r *rig) stall(from, to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalls[[2]string{from, to}] = true
}

// A stallingBody is read as long as its connection carries something.
type stallingBody struct {
	io.ReadCloser
	ctx     context.Context
	stalled func() bool
}

func (b *stallingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.stalled() {
		<-b.ctx.Done()
		return 0, context.Cause(b.ctx)
	}
	return n, err
}

// breakStreams breaks what a replica has open with another, on both sides.
func (rep *replica) breakStreams(other string) {
	rep.rig.mu.Lock()
	defer rep.rig.mu.Unlock()
	for _, cancel := range append(rep.rig.open[[2]string{rep.name, other}], rep.rig.open[[2]string{other, rep.name}]...) {
		cancel()
	}
}

// cut has two replicas not reach each other.
func (r *rig) cut(a, b string, cut bool) {
	r.mu.Lock()
	r.cuts[[2]string{a, b}], r.cuts[[2]string{b, a}] = cut, cut
	r.mu.Unlock()
}

// served is the server as the hub of a replica knows it.
type served struct{ *replica }

func (s served) Name() string              { return "files" }
func (s served) Scope() string             { return "files@" + s.name }
func (s served) Reason() error             { return nil }
func (s served) ForClient(err error) error { return err }
func (s served) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	return s.source.Watch(ctx, p, want)
}

// here is served for other replicas.
type here struct{ served }

func (h here) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	return h.source.WatchHere(ctx, p, want)
}

// kill ends a replica.
func (rep *replica) kill() {
	rep.killed.Do(func() {
		_ = rep.srv.Close()
		_ = rep.l.Close()
		rep.engine.SetAway(true)
		rep.hub.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = rep.streams.Wait(ctx)
		rep.endpoint.Close()
		rep.source.Close(context.Background())
		_ = rep.own.Close(context.Background())
		rep.group.Close()
		rep.rt.CloseIdleConnections()
	})
}

// A follower is a client's listen stream.
type follower struct {
	t    *testing.T
	mail *fanout.Mailbox
	sub  *hub.Subscription
	has  []string
}

// follow opens a listen stream of a client.
func (rep *replica) follow(p mcp.Principal, uris ...string) *follower {
	rep.rig.t.Helper()
	f := &follower{t: rep.rig.t, mail: fanout.NewMailbox(fanout.MailboxOptions{})}
	req := &mcp.Request{Method: spec.MethodListen, Principal: p, Profile: rep.profile(p, []byte("{}"))}
	sub, err := rep.hub.Subscribe(served{rep}, req, f.mail, mcp.SubscribeOptions{Stream: true})
	if err != nil {
		f.t.Fatal(err)
	}
	honored, err := sub.Add(f.t.Context(), mcp.Filter{URIs: uris})
	if err != nil {
		f.t.Fatalf("Add at %s: %v", rep.name, err)
	}
	f.sub, f.has = sub, honored.URIs
	return f
}

// take returns the changes that have come, with the number of each.
func (f *follower) take() map[string]int {
	got := make(map[string]int)
	for ev, ok := f.mail.Next(); ok; ev, ok = f.mail.Next() {
		got[ev.URI]++
	}
	return got
}

// want checks the changes that have come.
func (f *follower) want(what string, uris ...string) {
	f.t.Helper()
	synctest.Wait()
	want := make(map[string]int)
	for _, uri := range uris {
		want[uri]++
	}
	if got := f.take(); !maps.Equal(got, want) {
		f.t.Errorf("%s: changes %v, want %v", what, got, want)
	}
}

// wantSubscriptions checks on how many streams of the server URIs are.
func (r *rig) wantSubscriptions(what string, n int, uris ...string) {
	r.t.Helper()
	synctest.Wait()
	got := r.server.subscriptions()
	want := make(map[string]int)
	for _, uri := range uris {
		want[uri] = n
	}
	if !maps.Equal(got, want) {
		r.t.Errorf("%s: subscriptions %v, want %v", what, got, want)
	}
}

// owner returns the replica that holds the claim of the only profile.
func (r *rig) owner() *replica {
	r.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(r.by)) {
		rep := r.by[name]
		if c, ok := rep.engine.Holder(source.Names{}.Of(rep.profile("ada", []byte("{}")))); ok && c.Holder.Instance == name {
			return rep
		}
	}
	r.t.Fatal("no replica owns the profile")
	return nil
}

// others returns the replicas but one.
func (r *rig) others(but *replica) []*replica {
	var out []*replica
	for _, name := range slices.Sorted(maps.Keys(r.by)) {
		if r.by[name] != but {
			out = append(out, r.by[name])
		}
	}
	return out
}

// quiet waits until merges of streams are over.
func quiet() {
	time.Sleep(20 * time.Second)
	synctest.Wait()
}
