package sse

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// loop reads the same bytes over and over, so that a benchmark measures one
// long stream.
type loop struct {
	data []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.data[l.at:])
	l.at = (l.at + n) % len(l.data)
	return n, nil
}

var benchSizes = []int{100, 64 << 10, 1 << 20}

func BenchmarkReader(b *testing.B) {
	for _, n := range benchSizes {
		stream, _ := AppendEvent(nil, "message", "", bytes.Repeat([]byte("x"), n))
		b.Run(fmt.Sprintf("data=%d", n), func(b *testing.B) {
			r := NewReader(&loop{data: stream}, ReaderOptions{})
			b.ReportAllocs()
			b.SetBytes(int64(len(stream)))
			for b.Loop() {
				if ev, err := r.Next(); err != nil || len(ev.Data) != n {
					b.Fatal(len(ev.Data), err)
				}
			}
		})
	}
}

// BenchmarkReaderTake is a response stream: a reader for one event, whose data the caller
// keeps.
func BenchmarkReaderTake(b *testing.B) {
	for _, n := range benchSizes {
		stream, _ := AppendEvent(nil, "message", "", bytes.Repeat([]byte("x"), n))
		for _, pooled := range []bool{false, true} {
			b.Run(fmt.Sprintf("data=%d/buffer=%v", n, pooled), func(b *testing.B) {
				var buf []byte
				b.ReportAllocs()
				b.SetBytes(int64(len(stream)))
				for b.Loop() {
					r := NewReader(bytes.NewReader(stream), ReaderOptions{Buffer: buf})
					if _, err := r.Next(); err != nil {
						b.Fatal(err)
					}
					if data := r.Take(); pooled && cap(buf) == 0 {
						buf = make([]byte, 2*len(data)+1024)
					}
				}
			})
		}
	}
}

// BenchmarkCopy is the baseline of the two above.
func BenchmarkCopy(b *testing.B) {
	for _, n := range benchSizes {
		src, dst := make([]byte, n), make([]byte, n)
		b.Run(fmt.Sprintf("data=%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(dst, src)
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	for _, n := range benchSizes {
		data := bytes.Repeat([]byte("x"), n)
		b.Run(fmt.Sprintf("data=%d", n), func(b *testing.B) {
			w := NewWriter(io.Discard)
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				if err := w.Event("message", "", data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
