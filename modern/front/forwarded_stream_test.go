package front

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Filters of the four kinds are shared, and those of a legacy server narrowed.
func TestS01PlainFiltersAreShared(t *testing.T) {
	for _, c := range []struct {
		name, filter string
		era          spec.Era
	}{
		{"four kinds", `{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}`, spec.Modern},
		{"an extension that is off", `{"toolsListChanged":true,"com.example/jobs":false,"x":null}`, spec.Modern},
		{"legacy server", `{"toolsListChanged":true,"com.example/jobs":true}`, spec.Legacy},
	} {
		t.Run("S-01 "+c.name, func(t *testing.T) {
			s := moderntest.NewScript()
			s.OnServe = func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
				t.Error("the request went upstream as it is")
				return nil, io.EOF
			}
			f := moderntest.Follow(t, frontOf(t, s, behind(c.era)), "1", c.filter)
			if got := f.Next(); !strings.Contains(got, spec.NotifyAcknowledged) || strings.Contains(got, "com.example") {
				t.Errorf("event = %s, want an acknowledgment of what is shared", got)
			}
			(<-s.Listened).End(io.EOF)
		})
	}
}

// A group's listen stream about tasks has one acknowledgment: of what the front follows, and of what
// members take. Changes come after it, and the end of the one is the end of the other.
func TestG13OneStreamOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := moderntest.NewScript()
		callers, left := make(chan mcp.Caller, 1), make(chan error, 1)
		s.OnServe = func(ctx context.Context, _ *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
			callers <- c
			<-ctx.Done()
			left <- context.Cause(ctx)
			return nil, context.Cause(ctx)
		}
		l := lineOf(t, frontOf(t, s, func(o *Options) { o.Group = true; o.Upstream = func() spec.Era { return spec.Unknown } }))
		l.Send(moderntest.Request(`"x"`, spec.MethodListen, `{}`, `,"notifications":{"taskIds":["t"],"toolsListChanged":true,"resourceSubscriptions":["a:b"]}`))
		mail, c := <-s.Listened, <-callers
		tell := func(method, params string) {
			if err := c.Notify(t.Context(), mcp.Notification{Method: method, Params: []byte(params)}); err != nil {
				t.Error(err)
			}
		}
		want := func(text string) {
			t.Helper()
			if got := <-l.Sent; got != text {
				t.Errorf("the client was told %s\nwant %s", got, text)
			}
		}
		moderntest.ToolsChanged(mail)
		synctest.Wait()
		if len(l.Sent) > 0 {
			t.Errorf("before the acknowledgment the client was told %s", <-l.Sent)
		}
		tell(spec.NotifyAcknowledged, `{"notifications":{"taskIds":["t"],"events":1}}`)
		want(tagged(spec.NotifyAcknowledged, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"],"taskIds":["t"],"events":1},`, `"x"`))
		want(tagged(spec.NotifyToolsListChanged, ``, `"x"`))
		tell(spec.NotifyTasks, `{"taskId":"t"}`)
		want(tagged(spec.NotifyTasks, `"taskId":"t",`, `"x"`))
		moderntest.ToolsChanged(mail)
		want(tagged(spec.NotifyToolsListChanged, ``, `"x"`))
		mail.End(io.EOF)
		want(`{"jsonrpc":"2.0","id":"x","result":{"resultType":"complete","_meta":{"` + spec.MetaServerInfo + `":{"name":"s","version":"1"},"` + spec.MetaSubscriptionID + `":"x"}}}`)
		if err := <-left; err != errStreamEnded {
			t.Errorf("the members' streams ended with %v", err)
		}
	})
}

// What has come when the members' streams end is told before the end of the stream.
func TestG13ChangesBeforeTheEnd(t *testing.T) {
	f := frontOf(t, moderntest.NewScript(), nil)
	for range 100 { // the end may be seen first
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Accept", "application/json, text/event-stream")
		p := &newHTTPReply(f, w, r, wire.NumberID(1)).reply
		ctx, cancel := context.WithCancelCause(t.Context())
		s := &forwardedStream{reply: p, mail: fanout.NewMailbox(fanout.MailboxOptions{}), beside: true, cancel: cancel, acknowledged: make(chan struct{})}
		moderntest.ToolsChanged(s.mail)
		close(s.acknowledged)
		served := make(chan handlerResult, 1)
		served <- handlerResult{}
		_, cause := s.await(ctx, served, &stream{front: f, reply: p, mail: s.mail})
		if cancel(nil); cause != nil || !strings.Contains(w.Body.String(), spec.NotifyToolsListChanged) {
			t.Fatalf("the stream ended, because of %v, and its client was told %q, want also of the change", cause, w.Body)
		}
	}
}

// A stream that the gateway ends before the members have acknowledged it ends all the same, and its client
// is told of no change.
func TestG13TheEndBeforeTheAcknowledgment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := moderntest.NewScript()
		left := make(chan error, 1)
		s.OnServe = func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
			<-ctx.Done()
			left <- context.Cause(ctx)
			return nil, context.Cause(ctx)
		}
		l := lineOf(t, frontOf(t, s, func(o *Options) { o.Group = true; o.Upstream = func() spec.Era { return spec.Unknown } }))
		l.Send(moderntest.Request(`"x"`, spec.MethodListen, `{}`, `,"notifications":{"taskIds":["t"],"toolsListChanged":true}`))
		mail := <-s.Listened
		moderntest.ToolsChanged(mail)
		synctest.Wait()
		mail.End(io.EOF)
		synctest.Wait()
		if len(left) != 1 || len(l.Sent) != 1 {
			t.Fatalf("%d streams of members have ended, the client was sent %d messages, want one and one", len(left), len(l.Sent))
		}
		l.Want(`"id":"x","result":{"resultType":"complete"`)
	})
}

// That of a single server has everything upstream, and its acknowledgment as it is.
func TestG13StreamsOfOneServerPass(t *testing.T) {
	s := moderntest.NewScript()
	s.OnServe = func(ctx context.Context, _ *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
		return mcp.NewResult([]byte("{}"), nil), c.Notify(ctx, mcp.Notification{Method: spec.NotifyAcknowledged, Params: []byte(`{"notifications":{"taskIds":["t"]}}`)})
	}
	f := moderntest.Follow(t, frontOf(t, s, behind(spec.Modern)), "1", `{"taskIds":["t"],"toolsListChanged":true}`)
	f.Want(tagged(spec.NotifyAcknowledged, `"notifications":{"taskIds":["t"]},`, `1`))
}

// tagged returns a notification of the stream with an id.
func tagged(method, params, id string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":{` + params + `"_meta":{"` + spec.MetaSubscriptionID + `":` + id + `}}}`
}
