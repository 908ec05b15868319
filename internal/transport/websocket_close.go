package transport

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// The close codes that are used here. Spec: RFC 6455, 7.4.1.
const (
	CloseNormal      = websocket.CloseNormalClosure           // 1000: done
	CloseGoingAway   = websocket.CloseGoingAway               // 1001: the server is shutting down
	CloseProtocol    = websocket.CloseProtocolError           // 1002: frames that break RFC 6455
	CloseUnsupported = websocket.CloseUnsupportedData         // 1003: a binary message
	CloseInvalid     = websocket.CloseInvalidFramePayloadData // 1007: text that is not UTF-8
	ClosePolicy      = websocket.ClosePolicyViolation         // 1008: silence
	CloseTooBig      = websocket.CloseMessageTooBig           // 1009: a message over the limit
	CloseRestart     = websocket.CloseServiceRestart          // 1012: the session has ended; the client may connect again
	CloseTryLater    = websocket.CloseTryAgainLater           // 1013: there is no memory for a message, or no place, at the moment
	CloseInternal    = websocket.CloseInternalServerErr       // 1011: an error of this program

	// CloseUnauthorized says that the client's credential has expired or is refused. The
	// code is registered: IANA, WebSocket Close Code Number Registry.
	CloseUnauthorized = 3000
)

// closeTime bounds the closing handshake.
const closeTime = time.Second

// maxReason is the maximum length of a reason in a close frame.
const maxReason = 123

// A CloseError reports that the peer has closed a WebSocket.
type CloseError struct {
	Code   int    // 1005 if there was none
	Reason string // from the peer; may be empty
}

func (e *CloseError) Error() string {
	text := fmt.Sprintf("the peer closed the WebSocket with code %d", e.Code)
	if name := closeNames[e.Code]; name != "" {
		text += " (" + name + ")"
	}
	if e.Reason != "" {
		text += ": " + lastPart(redact.Looks(e.Reason))
	}
	return text
}

// closeNames have the meanings of close codes.
var closeNames = map[int]string{
	CloseNormal: "normal", CloseGoingAway: "going away", CloseProtocol: "protocol error", CloseUnsupported: "unsupported data",
	websocket.CloseNoStatusReceived: "none given", CloseInvalid: "invalid data", ClosePolicy: "policy violation",
	CloseTooBig: "message too big", CloseRestart: "restart", CloseTryLater: "try again later", CloseInternal: "internal error",
	CloseUnauthorized: "unauthorized",
}

// Close ends the connection with code 1000; see [WebSocket.End].
func (w *WebSocket) Close() error { return w.End(CloseNormal, "") }

// End closes the connection with a close code and a reason for people, of which it sends
// at most 123 bytes. It waits for a running write and for the peer's close frame, each
// for at most a second. Only the first call of End or Close has an effect; others wait
// for it.
func (w *WebSocket) End(code int, reason string) error {
	w.once.Do(func() {
		close(w.closing)
		if w.startClose(code, reason) {
			// A running Read ends at the peer's close frame or at the deadline.
			w.reading <- struct{}{}
			w.drain()
			<-w.reading
		}
		w.finish(ErrClosed)
		w.running.Wait()
		w.writing.turn <- struct{}{} // nobody writes any more
	})
	return nil
}

// sendClose sends a close frame.
func (w *WebSocket) sendClose(code int, reason string) error {
	if wake.Closed(w.done) {
		return w.err
	}
	reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
	return w.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(closeTime))
}

// startClose sends a close frame, and sets a deadline for reading that of the peer. It
// reports whether to wait for it.
func (w *WebSocket) startClose(code int, reason string) bool {
	return w.sendClose(code, reason) == nil && w.ws.SetReadDeadline(time.Now().Add(closeTime)) == nil
}

// refuse closes the connection because of an error of the peer. It waits for the peer's
// close frame: a connection that is closed with unread input is reset, and the peer might
// not receive the reason.
func (w *WebSocket) refuse(code int, reason string) error {
	if w.startClose(code, reason) {
		w.drain()
	}
	return w.finish(fmt.Errorf("the WebSocket was closed with code %d (%s): %s", code, closeNames[code], reason))
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

// broken returns the error of a failed read: the peer closed the connection, violated the
// protocol, or is gone.
func (w *WebSocket) broken(err error) error {
	var closed *websocket.CloseError
	switch {
	case wake.Closed(w.done):
		return w.err
	case errors.As(err, &closed) && closed.Code == websocket.CloseAbnormalClosure:
		return w.finish(fmt.Errorf("the WebSocket ended without a close frame: %w", io.ErrUnexpectedEOF))
	case errors.As(err, &closed):
		return w.finish(&CloseError{Code: closed.Code, Reason: closed.Text})
	}
	if !wake.Closed(w.closing) {
		w.refuseFrames()
	}
	return w.finish(fmt.Errorf("reading from the WebSocket: %v", err))
}

// refuseFrames closes the connection of a peer that may have violated the protocol; see
// refuse. Frames can't be recognized any more, so it only waits for the end of the
// connection.
func (w *WebSocket) refuseFrames() {
	_ = w.sendClose(CloseProtocol, "the frames can't be read") // gorilla has sent the reason already, or the peer is gone
	if w.ws.SetReadDeadline(time.Now().Add(closeTime)) == nil {
		_, _ = io.Copy(io.Discard, w.ws.NetConn())
	}
}

// finish closes the network connection, and returns why it ended.
func (w *WebSocket) finish(err error) error { return w.finishAfter(func() {}, err) }

// finishAfter calls last and then closes the connection with the reason err. Concurrent
// calls wait.
func (w *WebSocket) finishAfter(last func(), err error) error {
	w.finishOnce.Do(func() {
		last()
		w.err = err
		close(w.done)
		_ = w.ws.Close() // the connection is not used any more
	})
	return w.err
}
