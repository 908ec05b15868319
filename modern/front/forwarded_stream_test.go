package front

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
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
