package downstream

import (
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Message is a JSON-RPC message on its way to a client. A large part of it is not
// copied, since a copy would cost more than a write.
type Message struct {
	Text  []byte
	Large []byte // belongs at Text[At:]; may be empty
	At    int
	Hint  mcp.Hint // of an error; its status is the writer's to heed
}

// Bytes returns the message in one piece.
func (m *Message) Bytes() []byte {
	if len(m.Large) == 0 {
		return m.Text
	}
	return slices.Concat(m.Text[:m.At], m.Large, m.Text[m.At:])
}

// WriteError writes a JSON-RPC error as a complete HTTP response.
func WriteError(w http.ResponseWriter, status int, id wire.ID, e *wire.Error) {
	// If this fails, the client has left, and its context ends.
	_ = writeJSON(w, status, Message{Text: wire.AppendError(nil, id, e)})
}

// WriteBusy writes the error of a request that may be sent again in a second, as [WriteError]
// does.
func WriteBusy(w http.ResponseWriter, id wire.ID, e *wire.Error) {
	w.Header().Set("Retry-After", "1")
	WriteError(w, http.StatusServiceUnavailable, id, e)
}

// jsonType is the value of a header. It must not be changed.
var jsonType = []string{"application/json"}

func writeJSON(w http.ResponseWriter, status int, msg Message) error {
	h := w.Header()
	msg.Hint.SetHeader(h)
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(msg.Text) + len(msg.Large))}
	w.WriteHeader(status)
	if len(msg.Large) == 0 {
		_, err := w.Write(msg.Text)
		return err
	}
	for _, part := range [][]byte{msg.Text[:msg.At], msg.Large, msg.Text[msg.At:]} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

var buffers sync.Pool

// maxPooled is the size of the largest buffer that is reused.
const maxPooled = 4 << 20

// NewBuffer returns an empty buffer for a message.
func NewBuffer() *[]byte {
	if buf, ok := buffers.Get().(*[]byte); ok {
		*buf = (*buf)[:0]
		return buf
	}
	return new(make([]byte, 0, 4<<10))
}

// FreeBuffer frees a buffer of NewBuffer. It must not be used after.
func FreeBuffer(buf *[]byte) {
	if cap(*buf) <= maxPooled {
		buffers.Put(buf)
	}
}
