package detect

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What is in flight when a server is found to be of the other era is run again if that
// is safe, and else said to have been cut off. Nobody is told that the gateway ends.
func TestSwapInFlight(t *testing.T) {
	for _, tt := range []struct {
		method string
		to     spec.Era
		want   string // what the result or the error says
	}{
		{spec.MethodToolsList, spec.Modern, `"era":"modern"`},
		{spec.MethodToolsList, spec.Legacy, `"era":"legacy"`},
		{spec.MethodToolsCall, spec.Modern, `server "s" was found to speak 2026-07-28 (no sessions) while it ran tools/call; the request may have taken effect`},
		{spec.MethodToolsCall, spec.Legacy, `server "s" was found to speak 2025-11-25 and earlier (sessions) while it ran tools/call; the request may have taken effect`},
	} {
		bridgetest.RunBubble(t, tt.method+" to "+tt.to.String(), func(t *testing.T) {
			h := &house{sessions: true}
			h.modern.Store(tt.to == spec.Legacy)
			first := make(chan struct{}, 1)
			first <- struct{}{}
			h.hold = func(r *http.Request, method string) {
				if method != tt.method {
					return
				}
				select {
				case <-first:
					<-r.Context().Done() // until its connection is cut
				default:
				}
			}
			d, end := h.detect(t)
			defer end()
			d.Start()
			synctest.Wait()
			got := make(chan string, 1)
			go func() { got <- served(d, tt.method) }()
			synctest.Wait()
			h.modern.Store(tt.to == spec.Modern)
			d.Doubt("it was replaced")
			if text := <-got; !strings.Contains(text, tt.want) {
				t.Errorf("%s = %s, want %s", tt.method, text, tt.want)
			}
		})
	}
}

// served returns the text of a request's result, or of its error.
func served(d *Detector, method string) string { return servedTo(d, "", method) }

// servedTo is served for a request of a principal.
func servedTo(d *Detector, who mcp.Principal, method string) string {
	req := &mcp.Request{
		Method: method, Params: []byte(`{"name":"x"}`), Era: spec.Modern, Revision: spec.LatestModern,
		Profile: mcp.Profile{Scope: "s/a", Capabilities: []byte("{}"), Principal: who},
	}
	res, err := d.Serve(context.Background(), req, nil)
	if err != nil {
		return err.Error()
	}
	defer res.Release()
	return string(res.Body)
}

// A request may fail before the probe that its back is of has ended. It waits for another probe.
func TestU01BackFailsBeforeItsProbeHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := make(chan Finding, 1)
		d, err := New(Options{
			Name:  "s",
			Probe: func(context.Context) Finding { return <-probes },
			Open:  func(f Finding) (mcp.Back, error) { return &eraBack{era: f.Era}, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		d.Start()
		synctest.Wait()
		wrong := &eraBack{era: spec.Legacy}
		d.adopt(Finding{Era: spec.Legacy}, wrong)
		replaced := make(chan bool, 1)
		go func() { replaced <- d.probeAgain(t.Context(), wrong) }() // ends with the second probe
		synctest.Wait()
		probes <- Finding{Era: spec.Legacy}
		synctest.Wait()
		select {
		case <-replaced:
			t.Fatal("the end of the probe that the back is of was taken for another one")
		default:
		}
		probes <- Finding{Era: spec.Modern}
		if !<-replaced {
			t.Error("the back was not replaced")
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Who comes while a verdict is replaced is served once the clients of the former one were told: it is
// none of them, and what it opens goes on.
func TestU01ClientsOfTheNewVerdictComeAfterThoseOfTheFormer(t *testing.T) {
	s := newScene(t, Finding{Era: spec.Legacy})
	defer s.Close(t.Context())
	s.adopt(Finding{Era: spec.Legacy}, &eraBack{era: spec.Legacy})
	var told, served atomic.Bool
	after := make(chan bool, 1)
	s.WhenReplaced(func(error) {
		go func() { // ends when it was served
			if got, err := s.serve(t); err != nil || got != `{"era":"modern"}` {
				t.Errorf("Serve() = %s, %v, want the new back", got, err)
			}
			served.Store(true)
			after <- told.Load()
		}()
		for range 10_000 {
			runtime.Gosched()
		}
		if served.Load() {
			t.Error("a client was served by the new back before those of the former were told")
		}
		told.Store(true)
	})
	s.adopt(Finding{Era: spec.Modern}, &eraBack{era: spec.Modern})
	if !<-after {
		t.Error("a client was served while those of the former back were told")
	}
}

// Whose session is being opened when a server is found to be of the other era has it with the new
// back, and so has a call that waits for one: nothing of it was sent.
func TestU02SwapWhileASessionIsOpened(t *testing.T) {
	for name, ask := range map[string]func(d *Detector) string{
		"its own":         openedOwn,
		"that of a call":  func(d *Detector) string { return served(d, spec.MethodToolsCall) },
		"that of a list":  func(d *Detector) string { return served(d, spec.MethodToolsList) },
		"its description": described,
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			var slow atomic.Bool
			h := &house{sessions: true}
			h.hold = func(r *http.Request, method string) {
				if method == spec.MethodInitialize && slow.Load() {
					<-r.Context().Done() // until its connection is cut
				}
			}
			d, end := h.detect(t)
			defer end()
			d.Start()
			time.Sleep(2 * doubtPauses.Min) // from then on a doubt is checked at once
			slow.Store(true)
			got := make(chan string, 1)
			go func() { got <- ask(d) }()
			synctest.Wait()
			h.modern.Store(true)
			d.Doubt("it was replaced")
			if text := <-got; text != "" && !strings.Contains(text, `"era":"modern"`) {
				t.Errorf("%s, want what the new back answers", text)
			}
		})
	}
}

// ownCredentials are there at once for the gateway's own requests, and never for those of users.
type ownCredentials struct{}

func (ownCredentials) Authorization(ctx context.Context, b upstream.Behalf) (string, error) {
	if b.Principal == "" {
		return "Bearer own", nil
	}
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func (ownCredentials) Renew(context.Context, upstream.CredentialRefusal) (string, error) {
	return "", nil
}

// A call that waits to be sent when its server is found to be rolled back is served by the new back.
func TestU02SwapWhileACallWaitsToBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{sessions: true, credentials: ownCredentials{}}
		h.modern.Store(true)
		d, end := h.detect(t)
		defer end()
		d.Start()
		time.Sleep(2 * doubtPauses.Min) // from then on a doubt is checked at once
		got := make(chan string, 1)
		go func() { got <- servedTo(d, "u", spec.MethodToolsCall) }() // ends with the answer
		synctest.Wait()
		h.modern.Store(false)
		d.Doubt("it was rolled back")
		if text := <-got; !strings.Contains(text, `"era":"legacy"`) {
			t.Errorf("%s, want what the new back answers", text)
		}
	})
}

// openedOwn returns the error of opening a session for one client.
func openedOwn(d *Detector) string {
	m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`), wire.Options{})
	if err != nil {
		return err.Error()
	}
	req := &mcp.Request{Method: m.Method, Params: m.Params, Era: spec.Legacy, Profile: mcp.Profile{Scope: "s/b", Capabilities: []byte("{}")}}
	r, answer, err := d.OpenRelay(context.Background(), req, &m, relayClient{})
	switch {
	case err != nil:
		return err.Error()
	case r != nil || answer != nil:
		return fmt.Sprintf("a session, answered with %s", answer)
	}
	return ""
}

// described returns the error of a description.
func described(d *Detector) string {
	req := &mcp.Request{Method: spec.MethodDiscover, Era: spec.Modern, Revision: spec.LatestModern, Profile: mcp.Profile{Scope: "s/c", Capabilities: []byte("{}")}}
	switch desc, err := d.Describe(context.Background(), req); {
	case err != nil:
		return err.Error()
	case string(desc.Instructions) != `"modern"`:
		return "the description of the former back"
	}
	return ""
}

// A relayClient is a client that gets nothing and never rests.
type relayClient struct{}

func (relayClient) Message(context.Context, []byte, bool) error { return nil }
func (relayClient) Rest() (time.Duration, bool, bool)           { return 0, false, false }
func (relayClient) Retire(time.Duration) bool                   { return false }

// What a client is assumed to speak does not replace what a probe has found meanwhile.
func TestU01ProbeIsFasterThanTheAssumption(t *testing.T) {
	s := newScene(t, Finding{Era: spec.Modern})
	defer s.Close(t.Context())
	found, assumed := &eraBack{era: spec.Modern}, &eraBack{era: spec.Legacy}
	s.adopt(Finding{Era: spec.Modern}, found)
	s.adopt(Finding{Era: spec.Legacy, assumed: true}, assumed)
	if s.Era() != spec.Modern || assumed.closed.Load() != 1 || found.closed.Load() != 0 {
		t.Errorf("era %v, the assumed back closed %d times, the found one %d, want modern, once and never", s.Era(), assumed.closed.Load(), found.closed.Load())
	}
}

// A watchingBack answers Watch once it is closed, as a back does whose server is slow.
type watchingBack struct {
	eraBack
	over chan struct{}
}

func (b *watchingBack) Watch(context.Context, mcp.Profile, []fanout.Topic) ([]fanout.Topic, func(), error) {
	<-b.over
	return nil, nil, fmt.Errorf("watching s: %w", mcp.ErrShutdown)
}

func (b *watchingBack) Close(ctx context.Context) error {
	close(b.over)
	return b.eraBack.Close(ctx)
}

// Who subscribes while a verdict is replaced has the answer of the new back.
func TestU02SwapWhileSomebodySubscribes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Finding{Era: spec.Legacy})
		defer s.Close(t.Context())
		s.adopt(Finding{Era: spec.Legacy}, &watchingBack{eraBack: eraBack{era: spec.Legacy}, over: make(chan struct{})})
		got := make(chan error, 1)
		go func() { // ends with the answer
			_, _, err := s.Watch(t.Context(), mcp.Profile{}, nil)
			got <- err
		}()
		synctest.Wait()
		s.adopt(Finding{Era: spec.Modern}, &eraBack{era: spec.Modern})
		if err := <-got; err != nil {
			t.Errorf("Watch() = %v, want the new back's answer", err)
		}
	})
}
