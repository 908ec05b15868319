package transport

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// The close codes that are used here. Spec: RFC 6455, 7.4.1.
const (
	CloseNormal      = websocket.CloseNormalClosure           // 1000: done
	CloseGoingAway   = websocket.CloseGoingAway               // 1001: a server that is being stopped
	CloseProtocol    = websocket.CloseProtocolError           // 1002: frames that break RFC 6455
	CloseUnsupported = websocket.CloseUnsupportedData         // 1003: a binary message
	CloseInvalid     = websocket.CloseInvalidFramePayloadData // 1007: text that is not UTF-8
	ClosePolicy      = websocket.ClosePolicyViolation         // 1008: silence
	CloseTooBig      = websocket.CloseMessageTooBig           // 1009: a message over the limit
	CloseRestart     = websocket.CloseServiceRestart          // 1012: what it was for is over, and can be had anew
	CloseInternal    = websocket.CloseInternalServerErr       // 1011: a fault of our own
)

// closeTime bounds the closing handshake.
const closeTime = time.Second

// maxReason is how many bytes of a reason fit into a close frame.
const maxReason = 123

// A CloseError says that the peer has closed a WebSocket.
type CloseError struct {
	Code   int    // 1005 if it gave none
	Reason string // as the peer wrote it; may be empty
}

func (e *CloseError) Error() string {
	text := fmt.Sprintf("the peer closed the WebSocket with code %d", e.Code)
	if name := closeName(e.Code); name != "" {
		text += " (" + name + ")"
	}
	if e.Reason != "" {
		text += ": " + lastPart(redact.Looks(e.Reason))
	}
	return text
}

// closeName says in words what a close code means.
func closeName(code int) string {
	switch code {
	case CloseNormal:
		return "normal"
	case CloseGoingAway:
		return "going away"
	case CloseProtocol:
		return "protocol error"
	case CloseUnsupported:
		return "unsupported data"
	case websocket.CloseNoStatusReceived:
		return "none given"
	case CloseInvalid:
		return "invalid data"
	case ClosePolicy:
		return "policy violation"
	case CloseTooBig:
		return "message too big"
	case CloseRestart:
		return "restart"
	case CloseInternal:
		return "internal error"
	}
	return ""
}

// Close ends the connection with code 1000; see [WebSocket.End].
func (w *WebSocket) Close() error { return w.End(CloseNormal, "") }

// End ends the connection with a close code and a reason for people, of which 123
// bytes are sent. It waits for what is being written and for the peer's close frame, each
// for a second at most. After the first call of End or Close there is nothing to do
// for others, which wait for it.
func (w *WebSocket) End(code int, reason string) error {
	w.once.Do(func() {
		close(w.closing)
		if w.startClose(code, reason) {
			// Whoever reads meets the peer's close frame, or the deadline, and leaves.
			w.reading <- struct{}{}
			w.drain()
			<-w.reading
		}
		w.finish(ErrClosed)
		w.running.Wait()
	})
	return nil
}

// sendClose sends a close frame.
func (w *WebSocket) sendClose(code int, reason string) error {
	if isClosed(w.done) {
		return w.err
	}
	reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
	return w.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(closeTime))
}

// startClose sends a close frame, and has reads end in time for the peer's. It reports
// whether there is something to wait for.
func (w *WebSocket) startClose(code int, reason string) bool {
	return w.sendClose(code, reason) == nil && w.ws.SetReadDeadline(time.Now().Add(closeTime)) == nil
}

// refuse ends the connection for what the peer did. It waits for the peer's close frame:
// a connection that is closed while there is something to read is reset, and the peer
// might never read why.
func (w *WebSocket) refuse(code int, reason string) error {
	if w.startClose(code, reason) {
		w.drain()
	}
	return w.finish(fmt.Errorf("the WebSocket was closed with code %d (%s): %s", code, closeName(code), reason))
}

// drain reads until the peer's close frame, or the deadline. The caller holds the
// token to read.
func (w *WebSocket) drain() {
	for {
		if _, _, err := w.ws.NextReader(); err != nil {
			return
		}
	}
}

// broken says why a read failed: the peer closed the connection, broke the protocol,
// or is gone.
func (w *WebSocket) broken(err error) error {
	var closed *websocket.CloseError
	switch {
	case isClosed(w.done):
		return w.err
	case errors.As(err, &closed) && closed.Code == websocket.CloseAbnormalClosure:
		return w.finish(fmt.Errorf("the WebSocket ended without a close frame: %w", io.ErrUnexpectedEOF))
	case errors.As(err, &closed):
		return w.finish(&CloseError{Code: closed.Code, Reason: closed.Text})
	}
	if !isClosed(w.closing) {
		w.refuseFrames()
	}
	return w.finish(fmt.Errorf("reading from the WebSocket: %v", err))
}

// refuseFrames closes the connection of a peer that may have broken the protocol; see refuse. Frames
// can't be told apart any more, so its end is all that is waited for.
func (w *WebSocket) refuseFrames() {
	_ = w.sendClose(CloseProtocol, "the frames can't be read") // gorilla has said which one already, or nobody is there
	if w.ws.SetReadDeadline(time.Now().Add(closeTime)) == nil {
		_, _ = io.Copy(io.Discard, w.ws.NetConn())
	}
}

// finish ends the connection for good, and returns why it ended.
func (w *WebSocket) finish(err error) error { return w.finishAfter(func() {}, err) }

// finishAfter does one thing before it ends the connection, of which err is the reason
// whatever comes of that. Others that end the connection wait.
func (w *WebSocket) finishAfter(last func(), err error) error {
	w.finishOnce.Do(func() {
		last()
		w.err = err
		close(w.done)
		_ = w.ws.Close() // nothing more is expected of it
	})
	return w.err
}
