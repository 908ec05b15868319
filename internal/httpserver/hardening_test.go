package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
)

// Clients that connect and never finish a handshake cost as many connections as are
// allowed, and shut out nobody: the oldest of them makes room.
func TestHardeningSlowHandshakesInNumber(t *testing.T) {
	const most = 16
	r := start(t, most)
	hello := []byte{22, 3, 1, 2, 0, 1} // the beginning of a ClientHello
	var slow []net.Conn
	for range 5 * most {
		c := r.dial(t, 1)[0]
		if _, err := c.Write(hello); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	for range 3 { // each a new connection
		if _, err := r.get(r.client(t, nil)); err != nil {
			t.Errorf("GET beside slow handshakes = %v", err)
		}
	}
	bridgetest.Eventually(t, "the rest was closed", func() bool { return open(slow) <= most })
	for i, c := range slow[:most] {
		if !closed(c) {
			t.Errorf("connection %d of %d is open: it was among the oldest", i, len(slow))
		}
	}
	if n := r.counts.Count(limits.NewConnections.Key); n < 4*most {
		t.Errorf("the limit was counted %d times, want %d at least", n, 4*most)
	}
	if n := strings.Count(r.log.String(), "too many are without one"); n != 1 {
		t.Errorf("%d log lines of the limit in a moment, want 1: %s", n, &r.log)
	}
}

func open(conns []net.Conn) (n int) {
	for _, c := range conns {
		if !closed(c) {
			n++
		}
	}
	return n
}

// A handshake has as long as the headers of a request.
func TestHardeningSlowHandshakesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bridgetest.Listen()
		r := startOn(t, l, 0)
		c, err := l.DialContext(t.Context(), "tcp", "127.0.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := c.Write([]byte{22, 3}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("the server answered half a handshake")
		}
		if took := time.Since(begun); took != headerTimeout {
			t.Errorf("the connection was closed after %v, want %v", took, headerTimeout)
		}
		if err := r.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Of a request over TLS, too, the headers have their time.
func TestHardeningSlowHeadersOverTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bridgetest.Listen()
		r := startOn(t, l, 0)
		raw, err := l.DialContext(t.Context(), "tcp", "127.0.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		c := tls.Client(raw, &tls.Config{RootCAs: bridgetest.Pool(r.authority), ServerName: "127.0.0.1", Time: func() time.Time { return time.Now() }})
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n")); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_, _ = c.Read(make([]byte, 1))
		if took := time.Since(begun); took != headerTimeout {
			t.Errorf("the connection was closed after %v, want %v", took, headerTimeout)
		}
		_ = raw.Close()
		if err := r.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A request without TLS is told nothing of what is served.
func TestHardeningPlainRequestOnTLS(t *testing.T) {
	r := start(t, 0)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + r.Addr().String())
	if err != nil {
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("GET without TLS = %d, want 400", resp.StatusCode)
	}
}

// The socket of another user can't be connected to, at no moment.
func TestHardeningSocketIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	l, err := ListenSocket(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket is %v, %v, want mode 0600", info.Mode(), err)
	}
	if _, err := ListenSocket(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another process does") {
		t.Errorf("a second listener = %v, want it refused", err)
	}
	// The umask is what it was.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o777); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("a file is made with %v, %v after", info.Mode(), err)
	}
}

// What a killed process has left behind is replaced, and nothing else.
func TestHardeningSocketReplacesOnlySockets(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	again, err := ListenSocket(t.Context(), stale)
	if err != nil {
		t.Fatalf("ListenSocket = %v, want the stale socket replaced", err)
	}
	_ = again.Close()
	if _, err := os.Lstat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v, want the socket gone", err)
	}

	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.sock")
	if err := os.Symlink(precious, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{precious, link, dir} {
		if _, err := ListenSocket(t.Context(), path); err == nil || !strings.Contains(err.Error(), "no socket") {
			t.Errorf("ListenSocket(%s) = %v, want it refused", path, err)
		}
	}
	if text, err := os.ReadFile(precious); string(text) != "x" || err != nil {
		t.Errorf("the file is %q, %v", text, err)
	}
}
