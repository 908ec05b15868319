package modern

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
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
		event("%s", tagged(notifyHit, `"big":9007199254740993,`, id))
		event("%s", tagged(notifyHit, `"big":1e400,`, `"`+id+`"`))
		event("%s", plain)
		event("%s", bare)
		event("%s", tagged(spec.NotifyToolsListChanged, ``, id)) // which belongs on a listen stream
		event("%s", ended(id, id))
	}
	p.on[spec.MethodToolsCall] = p.on[methodWatch]
	f, s := before(t, p.back(BackOptions{}))
	for _, id := range []string{`"a/1"`, "7"} {
		c := followRequest(t, f, methodWatch, request(id, methodWatch, "{}", ""))
		c.want(tagged(notifyHit, `"big":9007199254740993,`, id))
		c.want(tagged(notifyHit, `"big":1e400,`, id))
		c.want(plain)
		c.want(bare)
		c.want(ended(id, id))
		c.want("")
		<-s.listened // it was counted among the streams, once
	}
	c := followRequest(t, f, spec.MethodToolsCall, request("8", spec.MethodToolsCall, "{}", `,"name":"x"`))
	if got := c.next(); !strings.Contains(got, notifyHit) {
		t.Errorf("event of a known method = %s, want %s", got, notifyHit)
	}
	if n := len(s.listened); n != 0 {
		t.Errorf("%d streams were counted for what is none", n)
	}
}

// Over connections on both sides the id tells whose a notification is; what names nobody
// reaches nobody.
func TestT29UnknownNotificationsPassOverConnections(t *testing.T) {
	drops := &upDrops{}
	b, peers := upLines(t, BackOptions{Metrics: drops})
	f, s := before(t, b)
	l := s.line(t, f)
	ids := map[string]string{} // the server's, by the client's
	var p *linePeer
	for _, id := range []string{"1", `"1"`} {
		l.serve(request(id, methodWatch, "{}", ""))
		if p == nil {
			p = <-peers
		}
		ids[id] = p.want(methodWatch).ID.String()
	}
	for n := range 3 {
		for client, server := range ids {
			p.write("%s", tagged(notifyHit, fmt.Sprintf(`"n":%d,`, n), server))
			if got, want := l.next(), tagged(notifyHit, fmt.Sprintf(`"n":%d,`, n), client); got != want {
				t.Errorf("sent = %s\nwant   %s", got, want)
			}
		}
	}
	p.write("%s", tagged(notifyHit, ``, `"`+ids["1"]+`"`))
	p.write("%s", tagged(notifyHit, ``, "99"))
	p.write("%s", `{"jsonrpc":"2.0","method":"`+notifyHit+`"}`)
	p.write("%s", ended(ids["1"], ids["1"]))
	l.want(tagged(notifyHit, ``, "1"))
	if got := l.next(); got != ended("1", "1") {
		t.Errorf("sent = %s\nwant   %s", got, ended("1", "1"))
	}
	if n := drops.count("unknown notification"); n != 2 {
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
	f, s := before(t, p.back(BackOptions{}))
	l := s.line(t, f)
	l.serve(request(`"w"`, methodWatch, "{}", ""))
	l.want(`{"` + spec.MetaSubscriptionID + `":"w"}`)
	if got := l.next(); strings.Contains(got, spec.MetaSubscriptionID) {
		t.Errorf("sent = %s, want no id in a result that had none", got)
	}
}

// Legacy clients are told nothing that their revisions don't have.
func TestL2M04UnknownNotificationsOfServersAreCounted(t *testing.T) {
	t.Run("T-29 HTTP", func(t *testing.T) {
		drops, x, p := &upDrops{}, &upCaller{}, newUpPeer(t)
		p.on[methodWatch] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			event := upStream(w)
			event("%s", tagged(notifyHit, ``, m.ID.String()))
			event("%s", ended(m.ID.String(), m.ID.String()))
		}
		_, err := upBody(p.back(BackOptions{Metrics: drops}).Serve(t.Context(), upRequest(methodWatch, `{}`), x))
		if n := drops.count("unknown notification"); err != nil || len(x.heard()) != 0 || n != 1 {
			t.Errorf("Serve() = %v, the client heard %q, %d counted; want 1 counted", err, x.heard(), n)
		}
	})
	t.Run("T-29 connection", func(t *testing.T) {
		drops, x := &upDrops{}, &upCaller{}
		b, peers := upLines(t, BackOptions{Metrics: drops})
		got := upServe(t.Context(), b, upRequest(methodWatch, `{}`), x)
		p := <-peers
		m := p.want(methodWatch)
		p.write("%s", tagged(notifyHit, ``, m.ID.String()))
		p.result(m.ID, `{"resultType":"complete"}`)
		o := <-got
		if n := drops.count("unknown notification"); o.err != nil || len(x.heard()) != 0 || n != 1 {
			t.Errorf("Serve() = %v, the client heard %q, %d counted; want 1 counted", o.err, x.heard(), n)
		}
	})
}

// What has become a stream ends with the listen streams; a request that has not is
// waited for.
func TestT30DrainingEndsStreams(t *testing.T) {
	b, peers := upLines(t, BackOptions{})
	f, s := before(t, b)
	l := s.line(t, f)
	l.serve(request("1", methodWatch, "{}", ""))
	p := <-peers
	stream := p.want(methodWatch)
	p.write("%s", tagged(notifyHit, ``, stream.ID.String()))
	l.want(notifyHit)
	l.serve(request("2", methodWatch, "{}", ""))
	short := p.want(methodWatch)
	down := make(chan error, 1)
	go func() { down <- l.Shutdown(t.Context()) }() // ends with the short one
	l.want(`"id":1,"error":{"code":-32603`, "shutting down")
	if c := p.want(spec.NotifyCancelled); string(wire.Get(c.Params, "requestId")) != stream.ID.String() {
		t.Errorf("cancelled %s, want the stream %s", c.Params, stream.ID)
	}
	select {
	case err := <-down:
		t.Errorf("Shutdown() = %v while a call was in flight", err)
	case <-time.After(20 * time.Millisecond):
	}
	p.result(short.ID, `{"resultType":"complete"}`)
	l.want(`"id":2,"result"`)
	if err := <-down; err != nil {
		t.Errorf("Shutdown() = %v", err)
	}
}

// Over HTTP, too; and a client that leaves takes the stream with it.
func TestT30StreamsEndOverHTTP(t *testing.T) {
	left := make(chan struct{}, 2)
	p := newUpPeer(t)
	p.on[methodWatch] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		upStream(w)("%s", tagged(notifyHit, ``, m.ID.String()))
		<-r.Context().Done()
		left <- struct{}{}
	}
	f, s := before(t, p.back(BackOptions{}))
	c := followRequest(t, f, methodWatch, request("1", methodWatch, "{}", ""))
	c.next()
	(<-s.listened).End(io.EOF)
	if got := c.next(); !strings.Contains(got, `"id":1,"error":{"code":-32603`) {
		t.Errorf("event = %s, want an error", got)
	}
	<-left
	c = followRequest(t, f, methodWatch, request("2", methodWatch, "{}", ""))
	c.next()
	c.body.Close()
	<-left
}
