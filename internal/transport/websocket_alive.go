package transport

import (
	"fmt"
	"io"
	"time"

	"github.com/gorilla/websocket"
)

// noteActivity notes that the peer is there.
func (w *WebSocket) noteActivity() { w.heard.Store(int64(time.Since(w.born))) }

// silence is how long nothing was heard of the peer while somebody reads: where
// nobody does nothing can be heard.
func (w *WebSocket) silence() time.Duration {
	if !w.waiting.Load() {
		return 0
	}
	return time.Since(w.born) - time.Duration(w.heard.Load())
}

// slow reports whether the peer takes too long over a message.
func (w *WebSocket) slow() bool {
	begun := time.Duration(w.begun.Load())
	return w.opts.MessageTimeout > 0 && begun > 0 && time.Since(w.born)-begun >= w.opts.MessageTimeout
}

// handleControl answers pings and notes pongs. Both arrive while somebody reads.
func (w *WebSocket) handleControl() {
	w.ws.SetPongHandler(func(string) error { w.noteActivity(); return nil })
	w.ws.SetPingHandler(func(data string) error {
		w.noteActivity()
		// A peer that does not take it is found out by whoever writes, or by its silence.
		_ = w.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(w.opts.WriteTimeout))
		return nil
	})
}

// watch pings the peer, and ends the connection when it is silent for too long, or
// takes too long over a message.
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
			if err := w.ping(now); err != nil {
				_ = w.writeFailed(err) // whoever reads hears of it
			}
		}
		timer.Reset(min(time.Until(next), 2*interval-silent))
	}
}

// ping asks the peer whether it is there. Where it takes its time over a message the
// ping waits behind that, which is no silence of its: the write has a time-out.
func (w *WebSocket) ping(now time.Time) error {
	heard := w.heard.Load()
	err := w.ws.WriteControl(websocket.PingMessage, nil, now.Add(w.opts.WriteTimeout))
	waited := time.Since(now)
	w.heard.CompareAndSwap(heard, min(heard+int64(waited), int64(time.Since(w.born)))) // else it was heard of meanwhile
	return err
}

// giveUp ends the connection to a peer that is not waited for any more. One that is
// there all the same learns the reason.
func (w *WebSocket) giveUp(err error, reason string) {
	_ = w.finishAfter(func() {
		_ = w.sendClose(ClosePolicy, reason) // maybe nobody is there
	}, err)
}

// An activityReader is a message that is being read: each part of it is a sign of the peer.
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
