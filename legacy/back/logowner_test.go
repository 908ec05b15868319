package back

import (
	"encoding/json"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
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

// What a server logs of a session that is being opened is not the first call's, nor
// that of another request that runs meanwhile.
func TestM2L12MessagesOfTheOpening(t *testing.T) {
	for name, list := range map[string]bool{"one call": false, "beside a list": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { playOpening(t, list) }) })
	}
}

func playOpening(t *testing.T, list bool) {
	d := &backtest.Metrics{}
	b := newAsker(t, Options{Options: upstream.Options{Metrics: d}}, func(a *legacytest.Server) {
		a.OnNotification("notifications/initialized", func() { a.Log("connected") })
		a.On = map[string]func(wire.Message) string{
			"ping":             func(wire.Message) string { time.Sleep(10 * time.Millisecond); a.Log("ready"); return `{}` },
			"logging/setLevel": func(wire.Message) string { a.Log("level set"); return `{}` },
			"tools/list":       func(wire.Message) string { time.Sleep(30 * time.Millisecond); return `{"tools":[]}` },
		}
		a.Call = func(*legacytest.ServerCall) string { a.Log("working"); return said("done") }
	})
	var requests sync.WaitGroup
	serve := func(req *mcp.Request) *backtest.Client {
		x := &backtest.Client{Answer: backtest.NeverAnswers}
		requests.Go(func() {
			if _, err := body(b.Serve(t.Context(), req, x)); err != nil {
				t.Error(err)
			}
		})
		return x
	}
	ada := serve(logged("ada"))
	var other *backtest.Client
	if list {
		req := ask("tools/list", "")
		req.Profile.Capabilities, req.LogLevel = json.RawMessage(hasRoots), "debug"
		other = serve(req)
	}
	requests.Wait()
	if got, want := ada.Heard(), []string{heardLog("working")}; !reflect.DeepEqual(got, want) {
		t.Errorf("the call heard %q, want %q", got, want)
	}
	if list && other.Heard() != nil {
		t.Errorf("the list heard %q, want nothing", other.Heard())
	}
	if n := d.Count("log message"); n != 3 {
		t.Errorf("%d messages were counted as dropped, want the three of the opening", n)
	}
}

// What a server logs while roots are exchanged, and for a moment after, is not the
// call's that runs meanwhile.
func TestM2L12MessagesOfRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &backtest.Metrics{}
		b := newAsker(t, Options{Options: upstream.Options{Metrics: d}}, func(a *legacytest.Server) {
			a.Call = func(c *legacytest.ServerCall) string {
				a.Log("before")
				time.Sleep(time.Second)
				_, reply := a.SendRequest("roots/list", `{}`)
				a.Log("asking for roots")
				<-reply
				time.Sleep(rootsSettleTime / 2)
				a.Log("roots updated")
				time.Sleep(rootsSettleTime/2 + time.Millisecond)
				a.Log("after")
				return said("done")
			}
		})
		x := &backtest.Client{Answer: backtest.Answers(map[string]string{"roots/list": adasRoots})}
		if _, err := body(b.Serve(t.Context(), logged("ada"), x)); err != nil {
			t.Fatal(err)
		}
		if got, want := x.Heard(), []string{heardLog("before"), heardLog("after")}; !reflect.DeepEqual(got, want) {
			t.Errorf("the call heard %q, want %q", got, want)
		}
		if n := d.Count("log message"); n != 2 {
			t.Errorf("%d messages were counted as dropped, want 2", n)
		}
	})
}

// What comes on the call's own stream is the call's, whatever else goes on; what
// comes on the GET stream meanwhile is not.
func TestM2L12MessagesOfRootsOverHTTP(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	onGet := make(chan string)
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		send := legacytest.StartSSE(w)
		for {
			select {
			case text := <-onGet:
				send("%s", text)
			case <-r.Context().Done():
				return
			}
		}
	}
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		send := legacytest.StartSSE(w)
		onGet <- `{"jsonrpc":"2.0","id":77,"method":"roots/list"}` // the client is asked, and does not answer yet
		onGet <- legacytest.LogText("info", "on the GET stream")
		onGet <- `{"jsonrpc":"2.0","method":"ping","id":78}` // has been read when this is taken
		send("%s", legacytest.LogText("info", "on its own"))
		send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}
	empty := func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) }
	p.On["ping"], p.On["logging/setLevel"] = empty, empty
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	x := &backtest.Client{Answer: backtest.NeverAnswers}
	if _, err := body(b.Serve(t.Context(), logged("ada"), x)); err != nil {
		t.Fatal(err)
	}
	if got, want := x.Heard(), []string{heardLog("on its own")}; !reflect.DeepEqual(got, want) {
		t.Errorf("the call heard %q, want %q", got, want)
	}
}
