package patience

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os/exec"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// dialSocket returns the transport of a client on a WebSocket: each line is a message.
func dialSocket(ctx context.Context, url string) (mcp.Transport, error) {
	ws, _, err := (&websocket.Dialer{Subprotocols: []string{"mcp"}}).DialContext(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	go linesOf(ws, in) // ends with the connection
	return &mcp.IOTransport{Reader: out, Writer: lineSocket{ws}}, nil
}

// linesOf writes the messages of a WebSocket as lines.
func linesOf(ws *websocket.Conn, to io.WriteCloser) {
	defer to.Close()
	for {
		_, text, err := ws.ReadMessage()
		if err != nil {
			return
		}
		if _, err := to.Write(append(text, '\n')); err != nil {
			return
		}
	}
}

// A lineSocket sends each line as a message.
type lineSocket struct{ ws *websocket.Conn }

func (s lineSocket) Write(p []byte) (int, error) {
	return len(p), s.ws.WriteMessage(websocket.TextMessage, p)
}

func (s lineSocket) Close() error { return s.ws.Close() }

// onSocket serves a command on WebSockets: each has a process of its own.
func onSocket(t *testing.T, argv ...string) http.Handler {
	up := websocket.Upgrader{Subprotocols: []string{"mcp"}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		cmd := exec.Command(argv[0], argv[1:]...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Error(err)
			return
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Error(err)
			return
		}
		go linesOf(ws, in) // ends with the connection, and ends the process
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			_ = ws.WriteMessage(websocket.TextMessage, lines.Bytes()) // if it is gone, the process ends
		}
		_ = cmd.Wait() // a killed one fails
	})
}
