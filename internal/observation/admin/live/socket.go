package live

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Subprotocol is that of the WebSocket.
const Subprotocol = "mcpbridge.live"

const (
	maxSockets = 16
	maxBatch   = 200 // events of one message
	tick       = 400 * time.Millisecond
	pingEvery  = 20 * time.Second
	writeTime  = 5 * time.Second
	maxRead    = 1 << 10 // bytes of a message of the other side, which has nothing to say
)

// A Socket serves WebSockets: a message with the state whenever that has changed, and one
// with the events since the last. Who reads too slowly misses events, which are counted, and
// is closed in the end.
type Socket struct {
	Feed  *Feed
	State *State
	// Allows reports whether whoever sent a request may look still. It is asked again and
	// again.
	Allows func(r *http.Request) bool

	open atomic.Int64
}

// A Frame is what a Socket sends.
type Frame struct {
	Type  string          `json:"type"` // state or events
	State json.RawMessage `json:"state,omitempty"`

	Events  []Event `json:"events,omitempty"`
	Skipped uint64  `json:"skipped,omitempty"` // since the last message: too many per second
	Missed  uint64  `json:"missed,omitempty"`  // before these events: read too slowly
}

// ServeHTTP implements [http.Handler]. Who may look was decided before.
func (s *Socket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.open.Add(1) > maxSockets {
		s.open.Add(-1)
		http.Error(w, "too many look at this gateway already; close a page, or a mcpbridge tail", http.StatusServiceUnavailable)
		return
	}
	defer s.open.Add(-1)
	// The origin was checked for this request as for all others.
	u := websocket.Upgrader{Subprotocols: []string{Subprotocol}, CheckOrigin: func(*http.Request) bool { return true }, HandshakeTimeout: writeTime}
	ws, err := u.Upgrade(w, r, nil)
	if err != nil {
		return // the Upgrader has answered
	}
	defer ws.Close()
	done := s.Feed.Look()
	defer done()
	read := make(chan struct{})
	go drain(ws, read) // ends with the connection
	v := &viewer{s: s, ws: ws, seq: s.Feed.Last()}
	v.run(r, read)
	_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""), time.Now().Add(time.Second))
	_ = ws.Close()
	<-read
}

// drain reads until the other side has left, or is silent for too long.
func drain(ws *websocket.Conn, done chan<- struct{}) {
	defer close(done)
	ws.SetReadLimit(maxRead)
	alive := func(string) error { return ws.SetReadDeadline(time.Now().Add(3 * pingEvery)) }
	ws.SetPongHandler(alive)
	_ = alive("")
	for {
		if _, _, err := ws.ReadMessage(); err != nil {
			return
		}
	}
}

// A viewer is one who looks.
type viewer struct {
	s       *Socket
	ws      *websocket.Conn
	seq     uint64 // of the last event sent
	version uint64 // of the last state sent
	skipped uint64
	pinged  time.Time
}

// run sends until the sender of r may look no longer, or the connection ends.
func (v *viewer) run(r *http.Request, left <-chan struct{}) {
	t := time.NewTicker(tick)
	defer t.Stop()
	v.skipped, v.pinged = v.s.Feed.Skipped(), time.Now()
	for v.s.Allows(r) && v.send() == nil {
		select {
		case <-t.C:
		case <-left:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (v *viewer) send() error {
	if text, version := v.s.State.Latest(); version != v.version {
		v.version = version
		// It is JSON already: a Frame would be checked and copied once more.
		if err := v.write(slices.Concat([]byte(`{"type":"state","state":`), text, []byte("}"))); err != nil {
			return err
		}
	}
	events, last, missed := v.s.Feed.Since(v.seq, maxBatch)
	v.seq = last
	if skipped := v.s.Feed.Skipped(); len(events) > 0 || missed > 0 || skipped != v.skipped {
		m := Frame{Type: "events", Events: events, Skipped: skipped - v.skipped, Missed: missed}
		v.skipped = skipped
		text, err := json.Marshal(m)
		if err == nil {
			err = v.write(text)
		}
		if err != nil {
			return err
		}
	}
	if time.Since(v.pinged) < pingEvery {
		return nil
	}
	v.pinged = time.Now()
	return v.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTime))
}

func (v *viewer) write(text []byte) error {
	if err := v.ws.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	return v.ws.WriteMessage(websocket.TextMessage, text)
}
