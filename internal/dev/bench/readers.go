//go:build linux

package main

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// readers are clients that hold streams open and count what comes.
type readers struct {
	count atomic.Int64 // events on all streams
	goal  atomic.Int64
	there chan time.Time // capacity 1: when count reached goal

	failed atomic.Pointer[error] // why a stream ended; nil as long as none has
}

func runReaders(c *control, _ roleOptions) error {
	r := &readers{there: make(chan time.Time, 1)}
	c.commands["open"] = r.open
	c.commands["expect"] = r.expectMore
	c.commands["await"] = r.awaitAll
	return c.run("")
}

// open opens streams: what kind, at which address, how many, and how many URIs
// each. It returns when every one has had its first event, or, of a legacy client,
// is open.
func (r *readers) open(args []string) (any, error) {
	kind, addr := args[0], args[1]
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return nil, err
	}
	each, err := strconv.Atoi(args[3])
	if err != nil {
		return nil, err
	}
	r.expect(n)
	var wg sync.WaitGroup
	room := make(chan struct{}, 32)
	for i := range n {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			if open := sessions[kind]; open != nil {
				r.follow(open(addr))
				return
			}
			r.connect(addr, streamRequest(kind, addr, i, each))
		})
	}
	wg.Wait()
	_, err = r.await()
	return n, err
}

// streamRequest is the request for the stream with a number.
func streamRequest(kind, addr string, i, each int) []byte {
	switch kind {
	case "hub":
		return fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", addr)
	case "topics":
		return modernListen(addr, "/mcp", topicURIs(i*each, each))
	}
	return modernListen(addr, "/mcp/http", []string{topicURI})
}

// expectMore sets how many more events awaitAll waits for.
func (r *readers) expectMore(args []string) (any, error) {
	n, err := strconv.Atoi(args[0])
	if err == nil {
		r.expect(n)
	}
	return nil, err
}

// awaitAll answers when what was expected has come: with the time of the last.
func (r *readers) awaitAll([]string) (any, error) {
	at, err := r.await()
	return at.UnixNano(), err
}

func (r *readers) expect(n int) {
	select {
	case <-r.there:
	default:
	}
	r.goal.Store(r.count.Load() + int64(n))
}

func (r *readers) await() (time.Time, error) {
	select {
	case at := <-r.there:
		return at, nil
	case <-time.After(30 * time.Second):
		err := fmt.Errorf("%d events are missing", r.goal.Load()-r.count.Load())
		if p := r.failed.Load(); p != nil {
			err = fmt.Errorf("%w; a stream ended: %w", err, *p)
		}
		return time.Time{}, err
	}
}

func (r *readers) connect(addr string, request []byte) {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = conn.Write(request)
	}
	if err != nil {
		r.failed.CompareAndSwap(nil, &err)
		return
	}
	go r.read(conn) // ends with the process, or the stream
}

// follow reads the stream of a legacy client, which counts as one event.
func (r *readers) follow(conn net.Conn, err error) {
	if err != nil {
		r.failed.CompareAndSwap(nil, &err)
		return
	}
	r.add()
	go r.read(conn) // ends with the process, or the stream
}

// add counts one event.
func (r *readers) add() {
	if r.count.Add(1) == r.goal.Load() {
		r.there <- time.Now()
	}
}

// read counts the data lines of a stream, wherever reads cut them.
func (r *readers) read(conn net.Conn) {
	const mark = "\ndata:"
	matched := 0
	buf := make([]byte, 1024)
	for {
		n, err := conn.Read(buf)
		for _, b := range buf[:n] {
			switch {
			case b == mark[matched]:
				matched++
			case b == mark[0]:
				matched = 1
			default:
				matched = 0
			}
			if matched == len(mark) {
				matched = 0
				r.add()
			}
		}
		if err != nil {
			r.failed.CompareAndSwap(nil, &err)
			return
		}
	}
}
