package back

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// extendedFilter is one that only the server understands in full.
const extendedFilter = `{"toolsListChanged":true,"com.example/jobs":{"ids":[1.0,9007199254740993]}}`

// forwardedListen returns a client's listen request that has a stream of its own upstream.
func forwardedListen() *mcp.Request {
	params := wire.Get([]byte(moderntest.Request("1", spec.MethodListen, "{}", `,"notifications":`+extendedFilter)), "params")
	return upModernRequest(spec.MethodListen, string(params))
}

// A filter with members of extensions has a stream of its own upstream: the request
// passes as it is, and so do the acknowledgment, what comes, and the end, under the
// client's own subscription id.
func TestS01ExtensionsHaveAStreamOfTheirOwn(t *testing.T) {
	p := newUpPeer(t)
	p.on[spec.MethodListen] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		event, id := upStream(w), m.ID.String()
		event("%s", moderntest.Tagged(spec.NotifyAcknowledged, `"notifications":`+extendedFilter+`,`, id))
		event("%s", moderntest.Tagged("notifications/com.example/job", `"id":9007199254740993,`, id))
		event("%s", moderntest.Tagged(spec.NotifyToolsListChanged, ``, id))
		event(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","more":1.0,"_meta":{"%s":%s}}}`, id, spec.MetaSubscriptionID, id)
	}
	b := p.back(Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: time.Millisecond}}}}) // which is none of a stream's
	f, s := before(t, b)
	for _, id := range []string{`"1"`, "1"} {
		c := moderntest.Follow(t, f, id, extendedFilter)
		c.Want(moderntest.Tagged(spec.NotifyAcknowledged, `"notifications":`+extendedFilter+`,`, id))
		c.Want(moderntest.Tagged("notifications/com.example/job", `"id":9007199254740993,`, id))
		c.Want(moderntest.Tagged(spec.NotifyToolsListChanged, ``, id))
		c.Want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","more":1.0,"_meta":{"%s":%[1]s}}}`, id, spec.MetaSubscriptionID))
		c.Want("")
		<-s.Listened // it was counted
	}
	got := p.requests(spec.MethodListen)
	if len(got) != 2 || got[0].id == got[1].id {
		t.Fatalf("the server got %v, want a stream for each", got)
	}
	for _, r := range got {
		if filter := string(wire.Get([]byte(r.params), "notifications")); filter != extendedFilter {
			t.Errorf("the server got the filter %s\nwant %s", filter, extendedFilter)
		}
	}
}

// A stream that the gateway ends has its result, one whose client leaves is cancelled
// upstream, and a refusal is the server's own.
func TestS01ExtensionStreamsEnd(t *testing.T) {
	left := make(chan struct{}, 2)
	p := newUpPeer(t)
	p.on[spec.MethodListen] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		upStream(w)("%s", moderntest.Tagged(spec.NotifyAcknowledged, `"notifications":{},`, m.ID.String()))
		<-r.Context().Done()
		left <- struct{}{}
	}
	f, s := before(t, p.back(Options{}))
	ended := moderntest.Follow(t, f, "5", extendedFilter)
	ended.Next()
	(<-s.Listened).End(io.EOF)
	if got := ended.Next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete"`) || !strings.Contains(got, `"`+spec.MetaSubscriptionID+`":5`) {
		t.Errorf("event = %s, want the result of the listen request", got)
	}
	ended.Want("")
	<-left
	leaves := moderntest.Follow(t, f, "6", extendedFilter)
	leaves.Next()
	leaves.Body.Close()
	<-left
	<-s.Listened
	p.on[spec.MethodListen] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		upFail(w, http.StatusBadRequest, m.ID, spec.CodeInvalidParams, `{"no":1}`)
	}
	if got := moderntest.Follow(t, f, "7", extendedFilter).Next(); !strings.Contains(got, `"id":7,"error":{"code":-32602`) || !strings.Contains(got, `{"no":1}`) {
		t.Errorf("event = %s, want the server's refusal", got)
	}
}

// A server may end a stream by a cancellation: the client gets a result, as of one that has ended
// gracefully, behind what came before, and no id that is not its own.
func TestS01ExtensionStreamsEndByACancellation(t *testing.T) {
	play := func(id string, send func(string, ...any)) {
		send("%s", moderntest.Tagged(spec.NotifyAcknowledged, `"notifications":{},`, id))
		send("%s", moderntest.Tagged("notifications/com.example/job", ``, id))
		send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"no more"}}`, id)
	}
	want := func(t *testing.T, b *Back) {
		f, s := before(t, b)
		c := moderntest.Follow(t, f, `"a"`, extendedFilter)
		c.Want(moderntest.Tagged(spec.NotifyAcknowledged, `"notifications":{},`, `"a"`))
		c.Want(moderntest.Tagged("notifications/com.example/job", ``, `"a"`))
		c.Want(`{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","_meta":{"` + spec.MetaSubscriptionID + `":"a"}}}`)
		c.Want("")
		<-s.Listened
	}
	t.Run("S-01 http", func(t *testing.T) {
		left := make(chan struct{})
		p := newUpPeer(t)
		p.on[spec.MethodListen] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			play(m.ID.String(), upStream(w))
			<-r.Context().Done()
			close(left)
		}
		want(t, p.back(Options{}))
		<-left // the response is not read any further
	})
	t.Run("S-01 connection", func(t *testing.T) {
		b, peers := upLines(t, Options{})
		go func() { // ends with the play
			p := <-peers
			play(p.Want(spec.MethodListen).ID.String(), p.Write)
		}()
		want(t, b)
	})
}

// Over a connection the streams are told apart by their ids, and one whose client does
// not keep up while others wait ends rather than lose messages.
func TestS01ExtensionsOverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := upLines(t, Options{})
		hold := make(chan struct{})
		told := make(chan string, 2*maxStreamNotes)
		x := &heldCaller{hold: hold, told: told}
		got := upServe(t.Context(), b, forwardedListen(), x)
		p := <-peers
		m := p.Want(spec.MethodListen)
		p.Write("%s", moderntest.Tagged(spec.NotifyAcknowledged, `"notifications":{},`, m.ID.String()))
		p.Write("%s", moderntest.Tagged("notifications/other", ``, "99"))
		p.Write("%s", moderntest.Tagged("notifications/com.example/job", ``, m.ID.String()))
		hold <- struct{}{}
		hold <- struct{}{}
		for _, method := range []string{spec.NotifyAcknowledged, "notifications/com.example/job"} {
			if n := <-told; n != method {
				t.Errorf("told %s, want %s", n, method)
			}
		}
		other := upServe(t.Context(), b, upModernRequest(spec.MethodToolsCall, `{"name":"x"}`), &backtest.Caller{})
		waits := p.Want(spec.MethodToolsCall)
		for range maxStreamNotes + 2 {
			p.Write("%s", moderntest.Tagged("notifications/com.example/job", ``, m.ID.String()))
		}
		if c := p.Want(spec.NotifyCancelled); string(wire.Get(c.Params, "requestId")) != m.ID.String() {
			t.Errorf("cancelled %s, want the listen request %s", c.Params, m.ID)
		}
		close(hold)
		p.Result(waits.ID, `{"resultType":"complete","content":[]}`)
		if o := <-other; o.err != nil {
			t.Errorf("Serve() of another request = %v, want its result", o.err)
		}
		if o := <-got; o.err == nil || !strings.Contains(o.err.Error(), "listen again") {
			t.Errorf("Serve() = %v, want an error that says what to do", o.err)
		}
	})
}

// Who waits for changes of lists and resources waits no longer for a slow client than who waits for a
// response.
func TestS01SlowListenersDelayNoChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := upLines(t, Options{})
		opened := openingListen(t, b, listenProfile, wantAll)
		p := <-peers
		shared := p.Want(spec.MethodListen)
		p.Write(ackText, granted, shared.ID)
		follower := <-opened
		defer follower.Close()
		hold := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(hold) })
		got := upServe(t.Context(), b, forwardedListen(), &heldCaller{hold: hold, told: make(chan string, 2*maxStreamNotes)})
		m := p.Want(spec.MethodListen)
		began := time.Now()
		go func() { // ends with what it writes
			for range maxStreamNotes + 2 {
				p.Write("%s", moderntest.Tagged("notifications/com.example/job", ``, m.ID.String()))
			}
			p.Write(listText, "tools", shared.ID)
			p.Result(m.ID, `{"resultType":"complete"}`)
		}()
		if ev, err := follower.Next(); err != nil || ev.Topic.Kind != fanout.ToolsListChanged || time.Since(began) > 3*time.Second {
			t.Errorf("Next() = %v, %v after %v, want the change within 3 s", ev, err, time.Since(began))
		}
		if o := <-got; o.err == nil || !strings.Contains(o.err.Error(), "listen again") {
			t.Errorf("Serve() of the slow one = %v, want an error that says what to do", o.err)
		}
	})
}

// A heldCaller takes one message for each that hold has.
type heldCaller struct {
	backtest.Caller
	hold chan struct{}
	told chan string
}

func (c *heldCaller) Notify(_ context.Context, n mcp.Notification) error {
	<-c.hold
	c.told <- n.Method
	return nil
}
