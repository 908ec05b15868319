package peer

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// carry runs a connection between two pipes, of which it returns the other ends.
func carry(t *testing.T, ends ...context.Context) (client, far net.Conn, done <-chan error) {
	near, client := net.Pipe()
	here, far := net.Pipe()
	c := &Carried{f: Forward{Quiet: 30 * time.Second, WriteTimeout: 10 * time.Second}, client: near, early: near, far: here}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ends...) }() // ends with the connection
	t.Cleanup(func() { _ = client.Close(); _ = far.Close() })
	return client, far, ended
}

func wantEnd(t *testing.T, what string, done <-chan error, want error, after time.Duration) {
	t.Helper()
	begin := time.Now()
	if err := <-done; err != want || time.Since(begin) != after {
		t.Errorf("%s: Run() = %v after %v, want %v after %v", what, err, time.Since(begin), want, after)
	}
}

func send(t *testing.T, from, to net.Conn, text string) {
	t.Helper()
	go func() { _, _ = from.Write([]byte(text)) }() // ends when it is read
	got := make([]byte, len(text))
	if _, err := io.ReadFull(to, got); err != nil || string(got) != text {
		t.Errorf("carried %q, %v, want %q", got, err, text)
	}
}

func TestCarried(t *testing.T) {
	for what, test := range map[string]func(t *testing.T){
		"the client leaves": func(t *testing.T) {
			client, far, done := carry(t)
			send(t, client, far, "ping")
			send(t, far, client, "pong")
			_ = client.Close()
			if err := <-done; err != nil && err != ErrCut {
				t.Errorf("Run() = %v", err)
			}
			if _, err := far.Read(make([]byte, 1)); err == nil {
				t.Error("the other replica is not told")
			}
		},
		"the other replica ends": func(t *testing.T) {
			client, far, done := carry(t)
			send(t, far, client, "last words")
			_ = far.Close()
			wantEnd(t, "in order", done, nil, 0)
			if _, err := client.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the client reads %v, want the end", err)
			}
		},
		"the other replica has stopped": func(t *testing.T) {
			_, far, done := carry(t)
			go func() { _, _ = io.Copy(io.Discard, far) }() // its kernel takes what comes
			wantEnd(t, "nothing comes", done, errQuiet, 30*time.Second)
		},
		"it sends now and then": func(t *testing.T) {
			client, far, done := carry(t)
			for range 10 {
				time.Sleep(29 * time.Second)
				send(t, far, client, "ping")
			}
			wantEnd(t, "then nothing comes", done, errQuiet, 30*time.Second)
		},
		"the client does not read": func(t *testing.T) {
			_, far, done := carry(t)
			go func() { _, _ = far.Write([]byte("much")) }() // ends with the connection
			wantEnd(t, "a write is stuck", done, nil, 10*time.Second)
		},
		"this replica ends, and the other can't be asked": func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			_, far, done := carry(t, ctx)
			cancel()
			<-done
			if _, err := far.Read(make([]byte, 1)); err == nil {
				t.Error("the connection goes on")
			}
		},
	} {
		t.Run(what, func(t *testing.T) { synctest.Test(t, test) })
	}
}
