package modern

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// before returns a front of modern clients before a back, and the script that counts
// its streams.
func before(t *testing.T, b *Back) (*Front, *script) {
	s := newScript()
	s.serve = b.Serve
	return s.front(t, behind(spec.Modern)), s
}

// extendedFilter is one that only the server understands in full.
const extendedFilter = `{"toolsListChanged":true,"com.example/jobs":{"ids":[1.0,9007199254740993]}}`

// A follower reads a listen stream over a socket.
type follower struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Scanner
}

func follow(t *testing.T, f *Front, id, filter string) *follower {
	t.Helper()
	return followRequest(t, f, spec.MethodListen, request(id, spec.MethodListen, "{}", `,"notifications":`+filter))
}

// followRequest posts a request, and reads the stream that answers it.
func followRequest(t *testing.T, f *Front, method, text string) *follower {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		m, err := wire.Parse(text, wire.Options{UniqueParams: true})
		if err != nil {
			t.Errorf("Parse(%s) = %v", text, err)
			return
		}
		f.ServeMessage(w, r, &m, exchange.Share{Principal: "ada"})
	}))
	t.Cleanup(srv.Close)
	req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}, "Mcp-Name": {"x"}, "Accept": {"application/json, text/event-stream"}}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return &follower{t, res.Body, bufio.NewScanner(res.Body)}
}

// next returns the next message, empty at the end of the stream.
func (f *follower) next() string {
	for f.in.Scan() {
		if data, ok := strings.CutPrefix(f.in.Text(), "data: "); ok {
			return data
		}
	}
	return ""
}

func (f *follower) want(text string) {
	f.t.Helper()
	if got := f.next(); got != text {
		f.t.Errorf("event = %s\nwant    %s", got, text)
	}
}

// tagged is a notification, with what its params have and the id of a subscription.
func tagged(method, params, id string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":{` + params + `"_meta":{"vendor/m":1.0,"` + spec.MetaSubscriptionID + `":` + id + `}}}`
}

// A filter with members of extensions has a stream of its own upstream: the request
// passes as it is, and so do the acknowledgment, what comes, and the end, under the
// client's own subscription id.
func TestS01ExtensionsHaveAStreamOfTheirOwn(t *testing.T) {
	p := newUpPeer(t)
	p.on[spec.MethodListen] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		event, id := upStream(w), m.ID.String()
		event("%s", tagged(spec.NotifyAcknowledged, `"notifications":`+extendedFilter+`,`, id))
		event("%s", tagged("notifications/com.example/job", `"id":9007199254740993,`, id))
		event("%s", tagged(spec.NotifyToolsListChanged, ``, id))
		event(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","more":1.0,"_meta":{"%s":%s}}}`, id, spec.MetaSubscriptionID, id)
	}
	b := p.back(BackOptions{Timeouts: Timeouts{Request: time.Millisecond}}) // which is none of a stream's
	f, s := before(t, b)
	for _, id := range []string{`"1"`, "1"} {
		c := follow(t, f, id, extendedFilter)
		c.want(tagged(spec.NotifyAcknowledged, `"notifications":`+extendedFilter+`,`, id))
		c.want(tagged("notifications/com.example/job", `"id":9007199254740993,`, id))
		c.want(tagged(spec.NotifyToolsListChanged, ``, id))
		c.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","more":1.0,"_meta":{"%s":%[1]s}}}`, id, spec.MetaSubscriptionID))
		c.want("")
		<-s.listened // it was counted
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
			s := newScript()
			s.serve = func(context.Context, *exchange.Request, exchange.Exchange) (*exchange.Result, error) {
				t.Error("the request went upstream as it is")
				return nil, io.EOF
			}
			f := follow(t, s.front(t, behind(c.era)), "1", c.filter)
			if got := f.next(); !strings.Contains(got, spec.NotifyAcknowledged) || strings.Contains(got, "com.example") {
				t.Errorf("event = %s, want an acknowledgment of what is shared", got)
			}
			(<-s.listened).End(io.EOF)
		})
	}
}

// A stream that the gateway ends has its result, one whose client leaves is cancelled
// upstream, and a refusal is the server's own.
func TestS01ExtensionStreamsEnd(t *testing.T) {
	left := make(chan struct{}, 2)
	p := newUpPeer(t)
	p.on[spec.MethodListen] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		upStream(w)("%s", tagged(spec.NotifyAcknowledged, `"notifications":{},`, m.ID.String()))
		<-r.Context().Done()
		left <- struct{}{}
	}
	f, s := before(t, p.back(BackOptions{}))
	ended := follow(t, f, "5", extendedFilter)
	ended.next()
	(<-s.listened).End(io.EOF)
	if got := ended.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete"`) || !strings.Contains(got, `"`+spec.MetaSubscriptionID+`":5`) {
		t.Errorf("event = %s, want the result of the listen request", got)
	}
	ended.want("")
	<-left
	leaves := follow(t, f, "6", extendedFilter)
	leaves.next()
	leaves.body.Close()
	<-left
	<-s.listened
	p.on[spec.MethodListen] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		upFail(w, http.StatusBadRequest, m.ID, spec.CodeInvalidParams, `{"no":1}`)
	}
	if got := follow(t, f, "7", extendedFilter).next(); !strings.Contains(got, `"id":7,"error":{"code":-32602`) || !strings.Contains(got, `{"no":1}`) {
		t.Errorf("event = %s, want the server's refusal", got)
	}
}

// Over a connection the streams are told apart by their ids, and one whose client does
// not keep up while others wait ends rather than lose messages.
func TestS01ExtensionsOverAConnection(t *testing.T) {
	b, peers := upLines(t, BackOptions{})
	hold := make(chan struct{})
	told := make(chan string, 2*maxStreamNotes)
	x := &heldCaller{hold: hold, told: told}
	params := wire.Get([]byte(request("1", spec.MethodListen, "{}", `,"notifications":`+extendedFilter)), "params")
	req := upModernRequest(spec.MethodListen, string(params))
	got := upServe(t.Context(), b, req, x)
	p := <-peers
	m := p.want(spec.MethodListen)
	p.write("%s", tagged(spec.NotifyAcknowledged, `"notifications":{},`, m.ID.String()))
	p.write("%s", tagged("notifications/other", ``, "99"))
	p.write("%s", tagged("notifications/com.example/job", ``, m.ID.String()))
	hold <- struct{}{}
	hold <- struct{}{}
	for _, method := range []string{spec.NotifyAcknowledged, "notifications/com.example/job"} {
		if n := <-told; n != method {
			t.Errorf("told %s, want %s", n, method)
		}
	}
	other := upServe(t.Context(), b, upModernRequest(spec.MethodToolsCall, `{"name":"x"}`), &upCaller{})
	waits := p.want(spec.MethodToolsCall)
	for range maxStreamNotes + 2 {
		p.write("%s", tagged("notifications/com.example/job", ``, m.ID.String()))
	}
	if c := p.want(spec.NotifyCancelled); string(wire.Get(c.Params, "requestId")) != m.ID.String() {
		t.Errorf("cancelled %s, want the listen request %s", c.Params, m.ID)
	}
	close(hold)
	p.result(waits.ID, `{"resultType":"complete","content":[]}`)
	if o := <-other; o.err != nil {
		t.Errorf("Serve() of another request = %v, want its result", o.err)
	}
	if o := <-got; o.err == nil || !strings.Contains(o.err.Error(), "listen again") {
		t.Errorf("Serve() = %v, want an error that says what to do", o.err)
	}
}

// A heldCaller takes one message for each that hold has.
type heldCaller struct {
	upCaller
	hold chan struct{}
	told chan string
}

func (c *heldCaller) Notify(_ context.Context, n exchange.Notification) error {
	<-c.hold
	c.told <- n.Method
	return nil
}
