package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

const (
	// maxReply bounds a reply, and a frame, in bytes.
	maxReply = 16 << 20
	// silence is how long a gateway may say nothing: it pings three times in it.
	silence  = time.Minute
	dialTime = 10 * time.Second
)

// An Admin is the admin address of a running mcpbridge.
type Admin struct {
	Address Address
	Token   string // empty if none is wanted
}

// A State is what a gateway holds.
type State struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	status.Snapshot
}

// State asks what the gateway holds.
func (a *Admin) State(ctx context.Context) (*State, error) {
	s := new(State)
	if err := a.ask(ctx, http.MethodGet, "/api/state", decoding(s)); err != nil {
		return nil, err
	}
	return s, nil
}

// A Link opens the admin page once.
type Link struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires,omitzero"` // never, if the page asks for no token
}

// Link asks for a link to the page.
func (a *Admin) Link(ctx context.Context) (Link, error) {
	var made struct {
		Path    string
		Expires time.Time
	}
	err := a.ask(ctx, http.MethodPost, "/api/link", decoding(&made))
	return Link{a.Address.URL + made.Path, made.Expires}, err
}

// decoding returns what reads a reply that is JSON.
func decoding(into any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(r).Decode(into) }
}

// ask sends a request without a body, and has its reply read.
func (a *Admin) ask(ctx context.Context, method, path string, read func(io.Reader) error) error {
	return a.send(ctx, method, path, nil, read)
}

// send sends a request, with a body of JSON unless that is nil, and has its reply read.
func (a *Admin) send(ctx context.Context, method, path string, body io.Reader, read func(io.Reader) error) error {
	t, url, where := a.Address.transport()
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, url+path, body)
	if err != nil {
		return fmt.Errorf("%s is not an address that can be asked: %w", where, err)
	}
	req.Header = a.header()
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := t.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("mcpbridge does not answer at %s: %w; is it running? name its admin address with --admin", where, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return refusal(res, where)
	}
	if err := read(io.LimitReader(res.Body, maxReply)); err != nil {
		return fmt.Errorf("%s does not answer as mcpbridge does: %w", where, err)
	}
	return nil
}

// Follow calls told with the events that pass, until ctx ends or the gateway does.
func (a *Admin) Follow(ctx context.Context, told func(live.Frame) error) error {
	t, url, where := a.Address.transport()
	d := websocket.Dialer{NetDialContext: t.DialContext, TLSClientConfig: t.TLSClientConfig, Subprotocols: []string{live.Subprotocol}, HandshakeTimeout: dialTime}
	ws, res, err := d.DialContext(ctx, "ws"+strings.TrimPrefix(url, "http")+"/api/live", a.header())
	if res != nil && err != nil {
		return refusal(res, where)
	}
	if err != nil {
		return fmt.Errorf("mcpbridge does not answer at %s: %w; is it running? name its admin address with --admin", where, err)
	}
	defer context.AfterFunc(ctx, func() { _ = ws.Close() })()
	defer func() { _ = ws.Close() }()
	err = receive(ws, told)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("following mcpbridge at %s: %w", where, err)
}

func receive(ws *websocket.Conn, told func(live.Frame) error) error {
	ws.SetReadLimit(maxReply)
	ping := ws.PingHandler()
	ws.SetPingHandler(func(text string) error {
		_ = ws.SetReadDeadline(time.Now().Add(silence)) // it is a socket, which has deadlines
		return ping(text)
	})
	for {
		_ = ws.SetReadDeadline(time.Now().Add(silence))
		var f live.Frame
		if err := ws.ReadJSON(&f); websocket.IsCloseError(err, websocket.CloseGoingAway) {
			return errors.New("it has ended")
		} else if err != nil {
			return err
		}
		if err := told(f); err != nil {
			return err
		}
	}
}

func (a *Admin) header() http.Header {
	h := make(http.Header)
	if a.Token != "" {
		h.Set("Authorization", "Bearer "+a.Token)
	}
	return h
}

// refusal says what an answer other than 200 means.
func refusal(res *http.Response, where string) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 300))
	switch res.StatusCode {
	case http.StatusUnauthorized:
		return fmt.Errorf("mcpbridge at %s wants its admin_token; name its configuration with -c, as the user that it runs as, or set MCPBRIDGE_ADMIN_TOKEN", where)
	case http.StatusNotFound:
		return fmt.Errorf("%s has no admin page; is it the admin address of mcpbridge, or of an earlier version?", where)
	}
	return fmt.Errorf("mcpbridge at %s answers %s: %s", where, res.Status, strings.TrimSpace(string(text)))
}
