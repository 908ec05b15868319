package transport

import (
	"fmt"
	"io"
	"time"

	"github.com/gorilla/websocket"
)

// noteActivity records that the peer has sent something.
func (w *WebSocket) noteActivity() { w.heard.Store(int64(time.Since(w.born))) }

// silence returns how long the peer has sent nothing while a Read is running. Without
// one, nothing can be received.
func (w *WebSocket) silence() time.Duration {
	if !w.waiting.Load() {
		return 0
	}
	return time.Since(w.born) - time.Duration(w.heard.Load())
}

// slow reports whether the peer takes too long to send a message.
func (w *WebSocket) slow() bool {
	begun := time.Duration(w.begun.Load())
	return w.opts.MessageTimeout > 0 && begun > 0 && time.Since(w.born)-begun >= w.opts.MessageTimeout
}

// handleControl answers pings and records pongs. Both arrive only while a Read is
// running.
func (w *WebSocket) handleControl() {
	w.ws.SetPongHandler(func(string) error { w.noteActivity(); return nil })
	w.ws.SetPingHandler(func(data string) error {
		w.noteActivity()
		if w.opts.WriteTimeout == 0 {
			select {
			case <-w.pongDue: // this pong answers the earlier ping, too
			default:
			}
			w.pongDue <- data
			return nil
		}
		// If it fails, a write or the keep-alive detects that.
		_ = w.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(w.opts.WriteTimeout))
		return nil
	})
}

// watch pings the peer, and closes the connection if the peer is silent for too long, or
// takes too long to send a message.
func (w *WebSocket) watch() {
	interval := w.opts.KeepAlive
	next := time.Now().Add(interval)
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-timer.C:
		}
		silent := w.silence()
		if silent >= 2*interval {
			silence := 2 * interval
			w.giveUp(fmt.Errorf("%w: nothing was heard for %v", ErrSilent, silence), fmt.Sprintf("nothing was heard for %v", silence))
			return
		}
		if w.slow() {
			w.giveUp(fmt.Errorf("%w: a message took longer than %v", ErrSlow, w.opts.MessageTimeout), fmt.Sprintf("the message took longer than %v", w.opts.MessageTimeout))
			return
		}
		if now := time.Now(); !now.Before(next) {
			next = now.Add(interval)
			w.ping(now)
		}
		timer.Reset(min(time.Until(next), 2*interval-silent))
	}
}

// ping sends a ping. It may wait for the write of a message that the peer reads slowly.
// That time does not count as silence if the write has a time-out.
func (w *WebSocket) ping(now time.Time) {
	if w.opts.WriteTimeout == 0 {
		select {
		case w.pingDue <- struct{}{}:
		default: // the last one has not been sent
		}
		return
	}
	heard := w.heard.Load()
	err := w.ws.WriteControl(websocket.PingMessage, nil, now.Add(w.opts.WriteTimeout))
	waited := time.Since(now)
	w.heard.CompareAndSwap(heard, min(heard+int64(waited), int64(time.Since(w.born)))) // else it has sent something meanwhile
	if err != nil {
		_ = w.writeFailed(err) // Read returns the error
	}
}

// control sends the pings and pongs of a connection whose writes have no time-out, so that
// neither watch nor Read waits for a peer that does not read. It ends with the connection.
func (w *WebSocket) control() {
	for {
		var err error
		select {
		case <-w.done:
			return
		case <-w.pingDue:
			err = w.ws.WriteControl(websocket.PingMessage, nil, time.Time{})
		case data := <-w.pongDue:
			err = w.ws.WriteControl(websocket.PongMessage, []byte(data), time.Time{})
		}
		if err != nil {
			_ = w.writeFailed(err) // Read returns the error
		}
	}
}

// giveUp closes the connection after a time-out of the peer, and sends the reason in case
// it is still there.
func (w *WebSocket) giveUp(err error, reason string) {
	_ = w.finishAfter(func() {
		_ = w.sendClose(ClosePolicy, reason) // the peer may be gone
	}, err)
}

// An activityReader reads a message, and records activity for each part of it.
type activityReader struct {
	r io.Reader
	w *WebSocket
}

func (e activityReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if n > 0 {
		e.w.noteActivity()
	}
	return n, err
}
