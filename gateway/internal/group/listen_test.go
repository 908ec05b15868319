package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A stream is one that a listener has open with a member.
type stream struct {
	filter string
	caller mcp.Caller
	ctx    context.Context
	end    chan error
}

// acknowledge grants a filter.
func (s *stream) acknowledge(t *testing.T, filter string) {
	s.tell(t, spec.NotifyAcknowledged, `{"notifications":`+filter+`,"_meta":{"io.modelcontextprotocol/subscriptionId":7}}`)
}

func (s *stream) tell(t *testing.T, method, params string) {
	t.Helper()
	if err := s.caller.Notify(t.Context(), mcp.Notification{Method: method, Params: []byte(params)}); err != nil {
		t.Error(err)
	}
}

// listened returns a member whose streams go to a channel.
func listened(name string) (*fake, chan *stream) {
	f, streams := newFake(name), make(chan *stream, 8)
	f.serve = func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
		s := &stream{string(wire.Get(req.Params, memberFilter)), c, ctx, make(chan error, 1)}
		streams <- s
		select {
		case err := <-s.end:
			if err != nil {
				return nil, err
			}
			return f.result(`{}`), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return f, streams
}

// A filter of tasks and extensions is divided; the client has one acknowledgment, and then what
// it was granted, by the names that it knows.
func TestG12ListeningToTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ofA := listened("a")
		b, ofB := listened("b")
		c, ofC := listened("c")
		old, ofOld := listened("old")
		old.era = spec.Legacy
		r := newRig(t, nil, a, b, c, old)
		other := newRig(t, func(o *Options) { o.Name = "others" }, a)
		id := func(member, inner string) string { return r.sealing.seal(sealedTask, member, inner) }
		ids := []string{id("b", "1"), id("a", "1"), "1", id("a", "2"), other.sealing.seal(sealedTask, "a", "3"), id("b", "1"), id("gone", "1"), r.sealing.seal(sealedState, "a", "4")}
		client := &backtest.Caller{Told: make(chan string, 16)}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { // ends with ctx
			_, err := r.Serve(ctx, request(spec.MethodListen, `{"notifications":{"toolsListChanged":true,"taskIds":["`+strings.Join(ids, `","`)+`",7],"resourceSubscriptions":["x:/a"],"events":{"x":1}}}`), client)
			ended <- err
		}()
		first, second, third := <-ofA, <-ofB, <-ofC
		for _, s := range [][2]string{
			{first.filter, `{"events":{"x":1},"taskIds":["1","2"]}`}, {second.filter, `{"events":{"x":1},"taskIds":["1"]}`}, {third.filter, `{"events":{"x":1}}`},
		} {
			if s[0] != s[1] {
				t.Errorf("a member got the filter %s, want %s", s[0], s[1])
			}
		}
		first.acknowledge(t, `{"taskIds":["2","1"]}`)
		third.acknowledge(t, `{"events":{"x":2}}`)
		early := make(chan struct{})
		go func() { // ends with the acknowledgment
			first.tell(t, spec.NotifyTasks, `{"taskId":"1","status":"completed","_meta":{}}`)
			close(early)
		}()
		synctest.Wait()
		if len(client.Told) > 0 {
			t.Fatalf("before all have acknowledged the client was told %s", <-client.Told)
		}
		second.acknowledge(t, `{"taskIds":[]}`)
		if got, want := <-client.Told, spec.NotifyAcknowledged+` {"notifications":{"taskIds":["`+id("a", "1")+`","`+id("a", "2")+`"],"events":{"x":2}}}`; got != want {
			t.Errorf("the acknowledgment is\n%s, want\n%s", got, want)
		}
		<-early
		if got, want := <-client.Told, spec.NotifyTasks+` {"taskId":"`+id("a", "1")+`","status":"completed","_meta":{}}`; got != want {
			t.Errorf("the client was told %s, want %s", got, want)
		}
		// Nothing else is told.
		first.tell(t, spec.NotifyTasks, `{"taskId":"9"}`)
		first.tell(t, spec.NotifyToolsListChanged, `{}`)
		first.tell(t, spec.NotifyResourceUpdated, `{"uri":"x:/a"}`)
		second.tell(t, spec.NotifyTasks, `{"taskId":"1"}`)
		first.acknowledge(t, `{"taskIds":["1"]}`)
		third.tell(t, "notifications/events/event", `{"n":1.0}`)
		third.tell(t, spec.NotifyMessage, `{"level":"info","data":1}`)
		for _, want := range []string{`notifications/events/event {"n":1.0}`, spec.NotifyMessage + ` {"level":"info","data":1,"logger":"c"}`} {
			if got := <-client.Told; got != want {
				t.Errorf("the client was told %s, want %s", got, want)
			}
		}
		leave()
		if err := <-ended; err != context.Canceled || len(ofOld)+len(client.Told) > 0 {
			t.Errorf("the stream ended with %v; a legacy member has %d streams, the client %d messages", err, len(ofOld), len(client.Told))
		}
	})
}

// A member whose stream ends is listened to again. What the client has missed meanwhile is not known:
// once the member answers, whatever it takes then, the client's stream ends, so that the client looks
// again. It does not as long as the member is away, nor for a member that tells nothing.
func TestG13ListeningAfterAGap(t *testing.T) {
	for _, tt := range []struct {
		name    string
		granted string
		answer  func(*testing.T, *stream)
		ends    bool
	}{
		{"takes the task again", `{"taskIds":["1"]}`, func(t *testing.T, s *stream) { s.acknowledge(t, `{"taskIds":["1"]}`) }, true},
		{"leaves the task out", `{"taskIds":["1"]}`, func(t *testing.T, s *stream) { s.acknowledge(t, `{"taskIds":[]}`) }, true},
		{"takes an extension again", `{"events":true}`, func(t *testing.T, s *stream) { s.acknowledge(t, `{"events":true}`) }, true},
		{"refuses", `{"taskIds":["1"]}`, func(_ *testing.T, s *stream) { s.end <- wire.Errorf(spec.CodeInvalidParams, "no such task") }, true},
		{"ends without an acknowledgment", `{"events":true}`, func(_ *testing.T, s *stream) { s.end <- nil }, true},
		{"is away", `{"taskIds":["1"]}`, func(_ *testing.T, s *stream) { s.end <- mcp.RefuseForNow("it is starting") }, false},
		{"can't be reached", `{"taskIds":["1"]}`, func(_ *testing.T, s *stream) { s.end <- errors.New("connection refused") }, false},
		{"told nothing before", `{"taskIds":[],"events":false}`, func(t *testing.T, s *stream) { s.acknowledge(t, `{"taskIds":[]}`) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, ofA := listened("a")
				b, ofB := listened("b")
				r := newRig(t, nil, a, b)
				id := r.sealing.seal(sealedTask, "a", "1")
				client := &backtest.Caller{Told: make(chan string, 16)}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				ended := make(chan string, 1)
				go func() { // ends with ctx
					res, err := r.Serve(ctx, request(spec.MethodListen, `{"notifications":{"toolsListChanged":true,"taskIds":["`+id+`"],"events":true}}`), client)
					text, _ := backtest.Body(res, err)
					ended <- text
				}()
				first, other := <-ofA, <-ofB
				first.acknowledge(t, tt.granted)
				other.acknowledge(t, `{"events":true}`)
				<-client.Told
				first.end <- nil
				again := <-ofA
				if again.filter != first.filter || len(ended) > 0 {
					t.Errorf("then the member got the filter %s, the client's stream has ended: %v", again.filter, len(ended) > 0)
				}
				tt.answer(t, again)
				synctest.Wait()
				if got := len(ended) > 0; got != tt.ends {
					t.Fatalf("the client's stream has ended: %v, want %v", got, tt.ends)
				}
				if len(client.Told) > 0 {
					t.Errorf("the client was told %s", <-client.Told)
				}
				if tt.ends {
					if got, want := <-ended, `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"all","version":"1"}}}`; got != want {
						t.Errorf("the stream ended with %s, want %s", got, want)
					}
					return
				}
				other.tell(t, "notifications/events/event", `{}`)
				if got := <-client.Told; got != "notifications/events/event {}" {
					t.Errorf("the client was told %s", got)
				}
			})
		})
	}
}

// Who acknowledges too late, or refuses, tells nothing, and keeps nobody waiting.
func TestG12ListeningWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ofA := listened("a")
		b, ofB := listened("b")
		c, ofC := listened("c")
		r := newRig(t, nil, a, b, c)
		client := &backtest.Caller{Told: make(chan string, 16)}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error)
		begun := time.Now()
		go func() { // ends with ctx
			_, err := r.Serve(ctx, request(spec.MethodListen, `{"notifications":{"events":true}}`), client)
			ended <- err
		}()
		late, refused, good := <-ofA, <-ofB, <-ofC
		good.acknowledge(t, `{"events":true}`)
		refused.end <- wire.Errorf(spec.CodeInvalidParams, "no")
		if got, want := <-client.Told, spec.NotifyAcknowledged+` {"notifications":{"events":true}}`; got != want || time.Since(begun) != DefaultPatience {
			t.Errorf("after %v the acknowledgment is %s, want %s", time.Since(begun), got, want)
		}
		late.acknowledge(t, `{"events":true}`)
		time.Sleep(time.Hour)
		if len(ofA)+len(ofB)+len(client.Told) > 0 {
			t.Errorf("streams were opened again: %d, %d; the client was told %d messages", len(ofA), len(ofB), len(client.Told))
		}
		leave()
		<-ended
		// A filter of nothing that members have keeps the stream open.
		ctx, leave = context.WithCancel(t.Context())
		go func() { // ends with ctx
			_, err := r.Serve(ctx, request(spec.MethodListen, `{"notifications":{"taskIds":["x"]}}`), client)
			ended <- err
		}()
		if got, want := <-client.Told, spec.NotifyAcknowledged+` {"notifications":{"taskIds":[]}}`; got != want {
			t.Errorf("the acknowledgment is %s, want %s", got, want)
		}
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("the stream has ended")
		}
		leave()
		<-ended
	})
	r := newRig(t, nil, newFake("a"))
	left, leave := context.WithCancel(t.Context())
	leave()
	_, err := r.call(left, request(spec.MethodListen, `{"notifications":{"TaskIds":["x"]}}`))
	wantError(t, "in another case", err, spec.CodeInvalidParams, "case-sensitive")
	for _, params := range []string{``, `{}`, `{"notifications":null}`, `{"notifications":["taskIds"]}`} {
		_, err = r.call(left, request(spec.MethodListen, params))
		wantError(t, params, err, spec.CodeInvalidParams, "not an object")
	}
	if got := r.members["a"].requests(); slices.Contains(got, spec.MethodListen) {
		t.Errorf("the member was asked %q", got)
	}
}

// A reload takes the streams of members that leave the group, and no others.
func TestG18ListeningThroughReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ofA := listened("a")
		b, ofB := listened("b")
		first := newRig(t, nil, a, b)
		newRigAfter(t, first.Back, nil, b)
		client := &backtest.Caller{Told: make(chan string, 16)}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { // ends with ctx
			_, err := first.Serve(ctx, request(spec.MethodListen, `{"notifications":{"events":true}}`), client)
			ended <- err
		}()
		leaving, staying := <-ofA, <-ofB
		leaving.acknowledge(t, `{"events":true}`)
		staying.acknowledge(t, `{"events":true}`)
		<-client.Told
		first.close() // as it is replaced
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal("the stream has ended")
		}
		staying.end <- nil
		again := <-ofB
		again.tell(t, "notifications/events/event", `{}`)
		if got := <-client.Told; got != "notifications/events/event {}" {
			t.Errorf("the client was told %s", got)
		}
		time.Sleep(time.Hour)
		if len(ofA) > 0 || leaving.ctx.Err() == nil {
			t.Error("the member that has left is listened to")
		}
		leave()
		<-ended
	})
}
