package back

import (
	"encoding/json"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// logged is a call that wants all messages, of a client that has roots.
func logged(who string) *mcp.Request {
	r := rooted(who)
	r.LogLevel = "debug"
	return r
}

func heardLog(data string) string {
	return `notifications/message {"level":"info","data":"` + data + `"}`
}

// log has the server write a log message that names no call.
func (a *asker) log(data string) { a.send("%s", logText("info", data)) }

// What a server logs of a session that is being opened is not the first call's, nor
// that of another request that runs meanwhile.
func TestM2L12MessagesOfTheOpening(t *testing.T) {
	for name, list := range map[string]bool{"one call": false, "beside a list": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { playOpening(t, list) }) })
	}
}

func playOpening(t *testing.T, list bool) {
	d := &drops{}
	b := newAsker(t, Options{Metrics: d}, func(a *asker) {
		onNote(a, "notifications/initialized", func() { a.log("connected") })
		a.on = map[string]func(wire.Message) string{
			"ping":             func(wire.Message) string { time.Sleep(10 * time.Millisecond); a.log("ready"); return `{}` },
			"logging/setLevel": func(wire.Message) string { a.log("level set"); return `{}` },
			"tools/list":       func(wire.Message) string { time.Sleep(30 * time.Millisecond); return `{"tools":[]}` },
		}
		a.call = func(*askerCall) string { a.log("working"); return said("done") }
	})
	var requests sync.WaitGroup
	serve := func(req *mcp.Request) *client {
		x := &client{ask: never}
		requests.Go(func() {
			if _, err := body(b.Serve(t.Context(), req, x)); err != nil {
				t.Error(err)
			}
		})
		return x
	}
	ada := serve(logged("ada"))
	var other *client
	if list {
		req := ask("tools/list", "")
		req.Profile.Capabilities, req.LogLevel = json.RawMessage(hasRoots), "debug"
		other = serve(req)
	}
	requests.Wait()
	if got, want := ada.heard(), []string{heardLog("working")}; !reflect.DeepEqual(got, want) {
		t.Errorf("the call heard %q, want %q", got, want)
	}
	if list && other.heard() != nil {
		t.Errorf("the list heard %q, want nothing", other.heard())
	}
	if n := d.count("log message"); n != 3 {
		t.Errorf("%d messages were counted as dropped, want the three of the opening", n)
	}
}

// What a server logs while roots are exchanged, and for a moment after, is not the
// call's that runs meanwhile.
func TestM2L12MessagesOfRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drops{}
		b := newAsker(t, Options{Metrics: d}, func(a *asker) {
			a.call = func(c *askerCall) string {
				a.log("before")
				time.Sleep(time.Second)
				_, reply := a.pose("roots/list", `{}`)
				a.log("asking for roots")
				<-reply
				time.Sleep(rootsDigest / 2)
				a.log("roots updated")
				time.Sleep(rootsDigest/2 + time.Millisecond)
				a.log("after")
				return said("done")
			}
		})
		x := &client{ask: says(map[string]string{"roots/list": adasRoots})}
		if _, err := body(b.Serve(t.Context(), logged("ada"), x)); err != nil {
			t.Fatal(err)
		}
		if got, want := x.heard(), []string{heardLog("before"), heardLog("after")}; !reflect.DeepEqual(got, want) {
			t.Errorf("the call heard %q, want %q", got, want)
		}
		if n := d.count("log message"); n != 2 {
			t.Errorf("%d messages were counted as dropped, want 2", n)
		}
	})
}

// What comes on the call's own stream is the call's, whatever else goes on; what
// comes on the GET stream meanwhile is not.
func TestM2L12MessagesOfRootsOverHTTP(t *testing.T) {
	p := newHTTPPeer(t)
	onGet := make(chan string)
	p.get = func(w http.ResponseWriter, r *http.Request) {
		send := startSSE(w)
		for {
			select {
			case text := <-onGet:
				send("%s", text)
			case <-r.Context().Done():
				return
			}
		}
	}
	p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		send := startSSE(w)
		onGet <- `{"jsonrpc":"2.0","id":77,"method":"roots/list"}` // the client is asked, and does not answer yet
		onGet <- logText("info", "on the GET stream")
		onGet <- `{"jsonrpc":"2.0","method":"ping","id":78}` // has been read when this is taken
		send("%s", logText("info", "on its own"))
		send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}
	empty := func(w http.ResponseWriter, _ *http.Request, m wire.Message) { answerJSON(w, m.ID, `{}`) }
	p.on["ping"], p.on["logging/setLevel"] = empty, empty
	b := newTestBack(t, Options{URL: p.URL})
	x := &client{ask: never}
	if _, err := body(b.Serve(t.Context(), logged("ada"), x)); err != nil {
		t.Fatal(err)
	}
	if got, want := x.heard(), []string{heardLog("on its own")}; !reflect.DeepEqual(got, want) {
		t.Errorf("the call heard %q, want %q", got, want)
	}
}
