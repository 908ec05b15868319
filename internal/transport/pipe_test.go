package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

func TestPipe(t *testing.T) {
	a, b := NewPipe()
	msg := []byte(" {\"id\":1}\n")
	if err := a.Write(msg); err != nil {
		t.Fatal(err)
	}
	clear(msg) // the pipe must not keep it
	if got := mustRead(t, b); got != `{"id":1}` {
		t.Errorf("Read = %s, want id 1", got)
	}
	if err := b.Write([]byte(`{"id":2}`)); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if got := mustRead(t, a); got != `{"id":2}` {
		t.Errorf("Read after the peer's Close = %s, want what it wrote before", got)
	}
	if _, err := a.Read(); err != io.EOF {
		t.Errorf("Read of a closed peer = %v, want EOF", err)
	}
	if err := a.Write(msg); err != io.ErrClosedPipe {
		t.Errorf("Write to a closed peer = %v, want ErrClosedPipe", err)
	}
	if _, err := b.Read(); err != ErrClosed {
		t.Errorf("Read after Close = %v, want ErrClosed", err)
	}
	if err := b.Write(msg); err != ErrClosed {
		t.Errorf("Write after Close = %v, want ErrClosed", err)
	}
}

func TestPipeOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewPipe()
		const n = 10 * pipeDepth
		go func() { // ends when all is written
			for i := range n {
				a.Write(fmt.Append(nil, i))
			}
			a.Close()
		}()
		for i := range n {
			if got := mustRead(t, b); got != fmt.Sprint(i) {
				t.Fatalf("message %d = %s", i, got)
			}
		}
		if _, err := b.Read(); err != io.EOF {
			t.Errorf("Read after the last = %v, want EOF", err)
		}
	})
}

func TestPipeWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := NewPipe()
		for range pipeDepth {
			if err := a.Write([]byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Write([]byte("{}")); !errors.Is(err, ErrWriteTimeout) {
			t.Errorf("Write to a full pipe = %v, want ErrWriteTimeout", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*DefaultWriteTimeout)
		defer cancel()
		begun := time.Now()
		if err := WriteUntil(ctx, a, []byte("{}")); !errors.Is(err, ErrUnwritten) || time.Since(begun) != 2*DefaultWriteTimeout {
			t.Errorf("WriteUntil to a full pipe = %v after %v, want it withdrawn when its context ends", err, time.Since(begun))
		}
	})
}

func TestPipeCloseUnblocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewPipe()
		for range pipeDepth {
			a.Write([]byte("{}"))
		}
		errs := make(chan error, 2)
		go func() { errs <- a.Write([]byte("{}")) }() // ends with Close
		go func() { _, err := a.Read(); errs <- err }()
		synctest.Wait()
		a.Close()
		for range cap(errs) {
			if err := <-errs; err != ErrClosed {
				t.Errorf("call during Close = %v, want ErrClosed", err)
			}
		}
		b.Close()
	})
}
