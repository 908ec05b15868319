package back

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	methodWatch = "com.example/watch"
	notifyHit   = "notifications/com.example/hit"
)

// ended is the result of a request, under an id, with that of a subscription.
func ended(id, subscription string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"more":1.0,"resultType":"complete","_meta":{"vendor/m":1.0,"%s":%s}}}`, id, spec.MetaSubscriptionID, subscription)
}

// Over HTTP what comes on a request's own stream is its client's, as it came but for the
// id; what has no id gets none.
func TestT29UnknownNotificationsPassOverHTTP(t *testing.T) {
	const plain = `{"jsonrpc":"2.0","method":"` + notifyHit + `","params":{"n":1.0}}`
	const bare = `{"jsonrpc":"2.0","method":"` + notifyHit + `"}`
	p := newUpPeer(t)
	p.on[methodWatch] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		event, id := upStream(w), m.ID.String()
		event("%s", moderntest.Tagged(notifyHit, `"big":9007199254740993,`, id))
		event("%s", moderntest.Tagged(notifyHit, `"big":1e400,`, `"`+id+`"`))
		event("%s", plain)
		event("%s", bare)
		event("%s", moderntest.Tagged(spec.NotifyToolsListChanged, ``, id)) // which belongs on a listen stream
		event("%s", ended(id, id))
	}
	p.on[spec.MethodToolsCall] = p.on[methodWatch]
	f, s := before(t, p.back(Options{}))
	for _, id := range []string{`"a/1"`, "7"} {
		c := moderntest.FollowRequest(t, f, methodWatch, moderntest.Request(id, methodWatch, "{}", ""))
		c.Want(moderntest.Tagged(notifyHit, `"big":9007199254740993,`, id))
		c.Want(moderntest.Tagged(notifyHit, `"big":1e400,`, id))
		c.Want(plain)
		c.Want(bare)
		c.Want(ended(id, id))
		c.Want("")
		<-s.Listened // it was counted among the streams, once
	}
	c := moderntest.FollowRequest(t, f, spec.MethodToolsCall, moderntest.Request("8", spec.MethodToolsCall, "{}", `,"name":"x"`))
	if got := c.Next(); !strings.Contains(got, notifyHit) {
		t.Errorf("event of a known method = %s, want %s", got, notifyHit)
	}
	if n := len(s.Listened); n != 0 {
		t.Errorf("%d streams were counted for what is none", n)
	}
}

// Over connections on both sides the id tells whose a notification is; what names nobody
// reaches nobody.
func TestT29UnknownNotificationsPassOverConnections(t *testing.T) {
	drops := &backtest.Metrics{}
	b, peers := upLines(t, Options{Options: upstream.Options{Metrics: drops}})
	f, _ := before(t, b)
	l := lineTo(t, f)
	ids := map[string]string{} // the server's, by the client's
	var p *backtest.Peer
	for _, id := range []string{"1", `"1"`} {
		l.Send(moderntest.Request(id, methodWatch, "{}", ""))
		if p == nil {
			p = <-peers
		}
		ids[id] = p.Want(methodWatch).ID.String()
	}
	for n := range 3 {
		for client, server := range ids {
			p.Write("%s", moderntest.Tagged(notifyHit, fmt.Sprintf(`"n":%d,`, n), server))
			if got, want := l.Next(), moderntest.Tagged(notifyHit, fmt.Sprintf(`"n":%d,`, n), client); got != want {
				t.Errorf("sent = %s\nwant   %s", got, want)
			}
		}
	}
	p.Write("%s", moderntest.Tagged(notifyHit, ``, `"`+ids["1"]+`"`))
	p.Write("%s", moderntest.Tagged(notifyHit, ``, "99"))
	p.Write("%s", `{"jsonrpc":"2.0","method":"`+notifyHit+`"}`)
	p.Write("%s", ended(ids["1"], ids["1"]))
	l.Want(moderntest.Tagged(notifyHit, ``, "1"))
	if got := l.Next(); got != ended("1", "1") {
		t.Errorf("sent = %s\nwant   %s", got, ended("1", "1"))
	}
	if n := drops.Count("unknown notification"); n != 2 {
		t.Errorf("%d notifications counted as dropped, want the 2 that name nobody", n)
	}
}

// A client on a connection that its requests share can't do without an id.
func TestT29AClientOnAConnectionGetsItsID(t *testing.T) {
	p := newUpPeer(t)
	p.on[methodWatch] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		event := upStream(w)
		event(`{"jsonrpc":"2.0","method":"%s"}`, notifyHit)
		event(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, m.ID)
	}
	f, _ := before(t, p.back(Options{}))
	l := lineTo(t, f)
	l.Send(moderntest.Request(`"w"`, methodWatch, "{}", ""))
	l.Want(`{"` + spec.MetaSubscriptionID + `":"w"}`)
	if got := l.Next(); strings.Contains(got, spec.MetaSubscriptionID) {
		t.Errorf("sent = %s, want no id in a result that had none", got)
	}
}

// Legacy clients are told nothing that their revisions don't have.
func TestL2M04UnknownNotificationsOfServersAreCounted(t *testing.T) {
	t.Run("T-29 HTTP", func(t *testing.T) {
		drops, x, p := &backtest.Metrics{}, &backtest.Caller{}, newUpPeer(t)
		p.on[methodWatch] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			event := upStream(w)
			event("%s", moderntest.Tagged(notifyHit, ``, m.ID.String()))
			event("%s", ended(m.ID.String(), m.ID.String()))
		}
		_, err := upBody(p.back(Options{Options: upstream.Options{Metrics: drops}}).Serve(t.Context(), upRequest(methodWatch, `{}`), x))
		if n := drops.Count("unknown notification"); err != nil || len(x.Heard()) != 0 || n != 1 {
			t.Errorf("Serve() = %v, the client heard %q, %d counted; want 1 counted", err, x.Heard(), n)
		}
	})
	t.Run("T-29 connection", func(t *testing.T) {
		drops, x := &backtest.Metrics{}, &backtest.Caller{}
		b, peers := upLines(t, Options{Options: upstream.Options{Metrics: drops}})
		got := upServe(t.Context(), b, upRequest(methodWatch, `{}`), x)
		p := <-peers
		m := p.Want(methodWatch)
		p.Write("%s", moderntest.Tagged(notifyHit, ``, m.ID.String()))
		p.Result(m.ID, `{"resultType":"complete"}`)
		o := <-got
		if n := drops.Count("unknown notification"); o.err != nil || len(x.Heard()) != 0 || n != 1 {
			t.Errorf("Serve() = %v, the client heard %q, %d counted; want 1 counted", o.err, x.Heard(), n)
		}
	})
}

// What has become a stream ends with the listen streams; a request that has not is
// waited for.
func TestT30DrainingEndsStreams(t *testing.T) {
	b, peers := upLines(t, Options{})
	f, _ := before(t, b)
	l := lineTo(t, f)
	l.Send(moderntest.Request("1", methodWatch, "{}", ""))
	p := <-peers
	stream := p.Want(methodWatch)
	p.Write("%s", moderntest.Tagged(notifyHit, ``, stream.ID.String()))
	l.Want(notifyHit)
	l.Send(moderntest.Request("2", methodWatch, "{}", ""))
	short := p.Want(methodWatch)
	down := make(chan error, 1)
	go func() { down <- l.Shutdown(t.Context()) }() // ends with the short one
	l.Want(`"id":1,"error":{"code":-32603`, "shutting down")
	if c := p.Want(spec.NotifyCancelled); string(wire.Get(c.Params, "requestId")) != stream.ID.String() {
		t.Errorf("cancelled %s, want the stream %s", c.Params, stream.ID)
	}
	select {
	case err := <-down:
		t.Errorf("Shutdown() = %v while a call was in flight", err)
	case <-time.After(20 * time.Millisecond):
	}
	p.Result(short.ID, `{"resultType":"complete"}`)
	l.Want(`"id":2,"result"`)
	if err := <-down; err != nil {
		t.Errorf("Shutdown() = %v", err)
	}
}

// Over HTTP, too; and a client that leaves takes the stream with it.
func TestT30StreamsEndOverHTTP(t *testing.T) {
	left := make(chan struct{}, 2)
	p := newUpPeer(t)
	p.on[methodWatch] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		upStream(w)("%s", moderntest.Tagged(notifyHit, ``, m.ID.String()))
		<-r.Context().Done()
		left <- struct{}{}
	}
	f, s := before(t, p.back(Options{}))
	c := moderntest.FollowRequest(t, f, methodWatch, moderntest.Request("1", methodWatch, "{}", ""))
	c.Next()
	(<-s.Listened).End(io.EOF)
	if got := c.Next(); !strings.Contains(got, `"id":1,"error":{"code":-32603`) {
		t.Errorf("event = %s, want an error", got)
	}
	<-left
	c = moderntest.FollowRequest(t, f, methodWatch, moderntest.Request("2", methodWatch, "{}", ""))
	c.Next()
	c.Body.Close()
	<-left
}
