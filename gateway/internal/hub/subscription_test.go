package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func TestSubscriptionFollowsUpstreamsAnswer(t *testing.T) {
	r := newRig(t, nil)
	r.source.refused = []string{"a:no"}
	g := r.join(t, mcp.SubscribeOptions{})
	g.add(t, mcp.Filter{Tools: true, URIs: []string{"a:1", "a:no", "a:2"}}, "toolsListChanged a:1 a:2")
	r.source.wantLog(t, "watch toolsListChanged", "watch a:1", "watch a:no", "watch a:2", "release a:no")
	r.push("ada", "a:no")
	r.push("ada", "a:1")
	g.wantHeard(t, "after two changes", "a:1")

	g.Remove("a:1", "a:never")
	r.source.wantLog(t, "release a:1")
	r.push("ada", "a:1")
	r.push("ada", "a:2")
	g.wantHeard(t, "after Remove", "a:2")

	g.add(t, uris("a:1"), "a:1")
	r.source.wantLog(t, "watch a:1")
	r.push("ada", "a:1")
	g.wantHeard(t, "after what was given up was added again", "a:1")
}

func TestSubscriptionLeavesNothing(t *testing.T) {
	r := newRig(t, nil)
	g := r.join(t, mcp.SubscribeOptions{})
	g.add(t, mcp.Filter{Tools: true, URIs: []string{"a:1", "a:2"}}, "toolsListChanged a:1 a:2")
	if s := r.Snapshot(); s.Pairs != 3 || s.Members != 1 {
		t.Fatalf("snapshot = %+v, want 3 pairs of 1 member", s)
	}
	r.source.log.Take()
	g.Close()
	g.Close()
	if s := r.Snapshot(); s.Pairs != 0 || s.Members != 0 {
		t.Errorf("snapshot = %+v after Close, want nothing", s)
	}
	r.source.wantLog(t, "release toolsListChanged", "release a:1", "release a:2")
	if _, err := g.Add(t.Context(), mcp.Filter{Tools: true}); !errors.Is(err, ErrUnsubscribed) {
		t.Errorf("Add() after Close = %v, want %v", err, ErrUnsubscribed)
	}
}

func TestSubscriptionRemovedWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.source.hold = make(chan struct{})
		g := r.join(t, mcp.SubscribeOptions{})
		added := make(chan mcp.Filter)
		go func() {
			honored, _ := g.Add(context.Background(), uris("a:1"))
			added <- honored
		}()
		synctest.Wait()
		g.Remove("a:1")
		r.source.wantLog(t, "watch a:1")
		close(r.source.hold)
		if honored := <-added; len(honored.URIs) != 0 {
			t.Errorf("Add() = %v though it was removed meanwhile, want nothing", honored)
		}
		r.source.wantLog(t, "release a:1")
		if s := r.Snapshot(); s.Pairs != 0 {
			t.Errorf("%d pairs left, want 0", s.Pairs)
		}
	})
}

// TestSubscriptionLosesTopic: where a listen stream would end, a session goes on
// and is told once more.
func TestSubscriptionLosesTopic(t *testing.T) {
	r := newRig(t, nil)
	g := r.join(t, mcp.SubscribeOptions{})
	g.add(t, uris("a:1", "a:2"), "a:1 a:2")
	r.source.log.Take()
	lost := topic("ada", "a:1")
	r.End(lost, errors.New("refused after a restart"))
	g.wantHeard(t, "after the loss", "a:1")
	g.wantEnd(t, nil)
	if r.Wanted(lost) || !strings.Contains(r.logs.String(), "refused after a restart") {
		t.Errorf("topic wanted = %v, log %s, want it told and not wanted", r.Wanted(lost), r.logs)
	}
	g.add(t, uris(lost.URI), "a:1")
	if got := r.source.log.Take(); !slices.Equal(got, []string{"release a:1", "watch a:1"}) {
		t.Errorf("the server was asked %q, want what was lost ended first", got)
	}
}

func TestSubscriptionEndsWithGateway(t *testing.T) {
	r := newRig(t, nil)
	g := r.join(t, mcp.SubscribeOptions{})
	r.Close()
	<-g.mail.Ready()
	g.wantEnd(t, mcp.ErrShutdown)
	for _, o := range []mcp.SubscribeOptions{{}, {Stream: true}, {Stream: true, Peer: true}} {
		r.refused(t, "ada", o, mcp.ErrShutdown.Error(), "in a moment")
	}
}

// Two who add the same topic at the same time ask the server once, and hear its answer both.
func TestSubscriptionIsAskedForOnce(t *testing.T) {
	for _, tt := range []struct {
		name, refused, want string
		asked               []string
	}{
		{"accepted", "", "a:1", []string{"watch a:1"}},
		{"refused", "a:1", "", []string{"watch a:1", "release a:1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				r.source.hold, r.source.refused = make(chan struct{}), []string{tt.refused}
				g := r.join(t, mcp.SubscribeOptions{})
				added := make(chan []string, 2)
				for range 2 {
					go func() {
						honored, _ := g.Add(context.Background(), uris("a:1"))
						added <- honored.URIs
					}()
				}
				synctest.Wait()
				close(r.source.hold)
				for range 2 {
					if got := strings.Join(<-added, " "); got != tt.want {
						t.Errorf("Add() = %q, want %q", got, tt.want)
					}
				}
				r.source.wantLog(t, tt.asked...)
			})
		})
	}
}

// Who waits for another's answer waits no longer than for its own.
func TestSubscriptionWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.source.hold = make(chan struct{})
		g := r.join(t, mcp.SubscribeOptions{})
		go func() { _, _ = g.Add(context.Background(), uris("a:1")) }() // ends with hold
		synctest.Wait()
		left := errors.New("the client left")
		ctx, leave := context.WithCancelCause(t.Context())
		leave(left)
		if _, err := g.Add(ctx, uris("a:1")); !errors.Is(err, left) {
			t.Errorf("Add() = %v, want %v", err, left)
		}
		close(r.source.hold)
	})
}

// A client is not told what went wrong with the server; the log is.
func TestSubscriptionErrorsAreForClients(t *testing.T) {
	r := newRig(t, nil)
	r.source.err = errors.New("dial 10.0.0.7: refused")
	g := r.join(t, mcp.SubscribeOptions{})
	if _, err := g.Add(t.Context(), uris("a:1")); err == nil || err.Error() != "the server did not answer" {
		t.Errorf("Add() = %v, want what clients are told", err)
	}
	if !strings.Contains(r.logs.String(), "dial 10.0.0.7") || r.Snapshot().Pairs != 0 {
		t.Errorf("snapshot %+v, log %s, want nothing held, and the cause", r.Snapshot(), r.logs)
	}
}

// Many changes of what was removed are held back, and no more than there is room for.
func TestSubscriptionForgetsInOrder(t *testing.T) {
	r := newRig(t, nil)
	g := r.join(t, mcp.SubscribeOptions{})
	var all []string
	for n := range maxForgotten + 2 {
		all = append(all, "a:"+strings.Repeat("x", n))
	}
	g.add(t, uris(all...), strings.Join(all, " "))
	g.Remove(all...)
	if n := len(g.forgotten); n != maxForgotten || g.forgotten[0].URI != all[2] {
		t.Errorf("%d topics are remembered as removed, the first %q, want the last %d", n, g.forgotten[0].URI, maxForgotten)
	}
	for _, uri := range all[len(all)-3:] { // in flight at the removal
		g.mail.Put(fanout.Event{Topic: topic("ada", uri)})
	}
	g.wantHeard(t, "after the removal")
}

// A listen stream asks for all at once, and has what the server honors of it.
func TestStreamAsksOnce(t *testing.T) {
	r := newRig(t, nil)
	r.source.refused = []string{"a:no", "a:never"}
	g := r.join(t, mcp.SubscribeOptions{Stream: true})
	g.add(t, mcp.Filter{Prompts: true, URIs: []string{"a:no", "a:1", "a:never"}}, "promptsListChanged a:1")
	r.source.wantLog(t, "watch promptsListChanged a:no a:1 a:never")
	if s := r.Snapshot(); s.Pairs != 2 || s.Streams != 1 || s.Members != 0 {
		t.Errorf("snapshot = %+v, want two pairs of a stream", s)
	}
	for _, uri := range []string{"a:no", "a:1", "a:never"} {
		g.mail.Put(fanout.Event{Topic: topic("ada", uri)})
	}
	g.wantHeard(t, "after three changes", "a:1")
	g.Close()
	r.source.wantLog(t, "release promptsListChanged a:no a:1 a:never")
}

// What a server can't report by now is left out of a listen stream. A session may ask again.
func TestM2L31NotNowIsLeftOut(t *testing.T) {
	r := newRig(t, nil)
	r.source.err = fmt.Errorf("watching files: %w", mcp.ErrNotNow)
	g := r.join(t, mcp.SubscribeOptions{Stream: true})
	g.add(t, uris("a:1"), "")
	g.mail.Put(fanout.Event{Topic: topic("ada", "a:1")})
	g.wantHeard(t, "of what was left out")
	if s := r.Snapshot(); s.Pairs != 0 {
		t.Errorf("%d pairs are left, want none", s.Pairs)
	}
	g.Close()
	session := r.join(t, mcp.SubscribeOptions{})
	if _, err := session.Add(t.Context(), uris("a:1")); err == nil {
		t.Error("Add() of a session succeeds, want an error, so that it asks again")
	}
}

// Two who add the same topic at the same time hear of the same error.
func TestSubscriptionErrorIsForBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.source.err, r.source.hold = mcp.ErrNotNow, make(chan struct{})
		g := r.join(t, mcp.SubscribeOptions{})
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := g.Add(context.Background(), uris("a:1"))
				errs <- err
			}()
		}
		synctest.Wait()
		close(r.source.hold)
		for range 2 {
			if err := <-errs; err == nil {
				t.Error("Add() = nil, want the server's error")
			}
		}
	})
}

// Who adds a topic that another request is adding asks the server itself, if that one leaves.
func TestSubscriptionIsAskedForAnewIfTheFirstLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.source.hold = make(chan struct{})
		g := r.join(t, mcp.SubscribeOptions{})
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = g.Add(ctx, uris("a:1")) }() // ends with leave
		synctest.Wait()
		added := make(chan error, 1)
		go func() { _, err := g.Add(t.Context(), uris("a:1")); added <- err }() // ends with hold
		synctest.Wait()
		leave()
		synctest.Wait()
		close(r.source.hold)
		if err := <-added; err != nil {
			t.Errorf("Add() = %v, want the server asked again", err)
		}
		r.source.wantLog(t, "watch a:1", "watch a:1")
	})
}

// What a server gives up before its answer was heard is to be asked for again, and not refused.
func TestG13GivenUpBeforeTheAnswerIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.source.hold = make(chan struct{})
		f, err := r.Follow(r.source, requestOf("ada").Profile, "all", fanout.NewMailbox(fanout.MailboxOptions{}), func(fanout.Topic, error) {})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		tools := fanout.Topic{Scope: "peer/ada", Kind: fanout.ToolsListChanged}
		got := make(chan error, 1)
		go func() { // ends with hold
			_, err := f.Follow(t.Context(), mcp.Share{}, tools)
			got <- err
		}()
		synctest.Wait()
		r.End(tools, errors.New("it has moved"))
		close(r.source.hold)
		if err := <-got; !errors.Is(err, mcp.ErrNotNow) {
			t.Errorf("Follow() = %v, want that it can be asked again", err)
		}
	})
}

// A listen stream whose server fails has nothing, and one that was closed meanwhile neither.
func TestStreamThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.source.err = errors.New("no")
		g := r.join(t, mcp.SubscribeOptions{Stream: true})
		if _, err := g.Add(t.Context(), uris("a:1")); !errors.Is(err, r.source.err) || r.Snapshot().Pairs != 0 {
			t.Errorf("Add() = %v, %+v, want %v and no pairs", err, r.Snapshot(), r.source.err)
		}
		r.source.err, r.source.hold = nil, make(chan struct{})
		added := make(chan error)
		go func() { _, err := g.Add(context.Background(), uris("a:1")); added <- err }()
		synctest.Wait()
		g.Close()
		r.source.log.Take()
		close(r.source.hold)
		if err := <-added; err != nil {
			t.Errorf("Add() = %v", err)
		}
		r.source.wantLog(t, "release a:1")
	})
}

// A listen stream ends with a topic, with its credential, with its server's lifetime and
// with its server's program.
func TestStreamEnds(t *testing.T) {
	reason := errors.New("that is why")
	for _, tt := range []struct {
		name string
		end  func(r *rig)
	}{
		{"topic", func(r *rig) { r.End(topic("ada", "a:1"), reason) }},
		{"credential", func(r *rig) { r.expire(reason) }},
		{"server", func(r *rig) { r.EndServer(r.source, reason) }},
		{"lifetime", func(r *rig) { r.EndSubscriptions(r.source, reason) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			g := r.join(t, mcp.SubscribeOptions{Stream: true})
			g.add(t, uris("a:1", "a:2"), "a:1 a:2")
			r.End(topic("bob", "a:1"), errors.New("of another"))
			r.EndServer(&source{name: "pe"}, errors.New("of another"))
			r.EndSubscriptions(&source{name: "pe"}, errors.New("of another"))
			g.wantEnd(t, nil)
			tt.end(r)
			g.wantEnd(t, reason)
			g.Close()
			if !slices.Equal(r.source.log.Take(), []string{"watch a:1 a:2", "release a:1 a:2"}) || r.forgets != 1 {
				t.Errorf("its credential was forgotten %d times, want what it watched released, and once", r.forgets)
			}
		})
	}
}
