package bridgetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// connect returns both ends of a connection.
func connect(t *testing.T, l *Listener) (client, server net.Conn) {
	t.Helper()
	accepted := make(chan net.Conn)
	go func() { // ends with the connection that follows
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	client, err := l.DialContext(t.Context(), "tcp", "anywhere:80")
	if err != nil {
		t.Fatal(err)
	}
	return client, <-accepted
}

func TestConnDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, Listen())
		defer client.Close()
		defer server.Close()

		start := time.Now()
		client.SetReadDeadline(start.Add(time.Hour))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("Read = %v after %v, want the deadline after an hour", err, time.Since(start))
		}
		client.SetReadDeadline(time.Time{})
		server.Write([]byte("x"))
		if n, err := client.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("Read without deadline = %d, %v, want 1", n, err)
		}

		client.SetWriteDeadline(time.Now().Add(time.Minute))
		n, err := client.Write(make([]byte, bufferSize+1))
		if n != bufferSize || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write to one that does not read = %d, %v, want %d and the deadline", n, err, bufferSize)
		}
		// A deadline that was replaced must not fire.
		client.SetReadDeadline(time.Now().Add(time.Second))
		client.SetReadDeadline(time.Now().Add(time.Hour))
		start = time.Now()
		if client.Read(make([]byte, 1)); time.Since(start) != time.Hour {
			t.Errorf("Read ended after %v, want the later deadline", time.Since(start))
		}
	})
}

func TestConnClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, Listen())
		client.Write([]byte("last words"))
		blocked := make(chan error)
		go func() { // ends with Close
			_, err := client.Read(make([]byte, 1))
			blocked <- err
		}()
		synctest.Wait()
		client.Close()
		if err := <-blocked; err != net.ErrClosed {
			t.Errorf("Read during Close = %v, want ErrClosed", err)
		}
		if got, err := io.ReadAll(server); string(got) != "last words" || err != nil {
			t.Errorf("peer read %q, %v, want what was written before", got, err)
		}
		if _, err := server.Write([]byte("x")); err != syscall.EPIPE {
			t.Errorf("peer's Write = %v, want EPIPE", err)
		}
		if _, err := client.Write([]byte("x")); err != net.ErrClosed {
			t.Errorf("Write after Close = %v, want ErrClosed", err)
		}
		server.Close()
	})
}

func TestListenerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		errs := make(chan error, 2)
		go func() { _, err := l.Accept(); errs <- err }() // ends with Close
		synctest.Wait()
		l.Close()
		l.Close()
		if err := <-errs; err != net.ErrClosed {
			t.Errorf("Accept = %v, want ErrClosed", err)
		}
		if _, err := l.DialContext(t.Context(), "tcp", "x"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("DialContext = %v, want ErrClosed", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Listen().DialContext(ctx, "tcp", "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("DialContext of one that does not accept = %v, want DeadlineExceeded", err)
		}
	})
}

func TestHTTPInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			time.Sleep(time.Hour) // passes at once
			w.Write(body)
		})}
		served := make(chan error)
		go func() { served <- srv.Serve(l) }() // ends with Close
		tr := l.Transport()
		big := bytes.Repeat([]byte("x"), 5*bufferSize)
		resp, err := (&http.Client{Transport: tr}).Post("http://127.0.0.1/", "text/plain", bytes.NewReader(big))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !bytes.Equal(got, big) || err != nil {
			t.Errorf("body = %d bytes, %v, want %d", len(got), err, len(big))
		}
		tr.CloseIdleConnections()
		srv.Close()
		<-served
	})
}
