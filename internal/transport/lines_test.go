package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzLines compares the line reader, reading whole and byte by byte, with strings.Split.
func FuzzLines(f *testing.F) {
	f.Add("{}\n\r\n{\"a\":1}\nxxxxxxxxxxxxxxxxxxxx\n{}", 12)
	f.Add("\n\n", 1)
	f.Add("abc", 2)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		if limit < 1 {
			return
		}
		want := strings.Split(in, "\n")
		if last := len(want) - 1; want[last] == "" {
			want = want[:last]
		}
		for _, src := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			l := &lineReader{src: src, limit: limit}
			for i, line := range want {
				got, partial, err := l.next()
				var tooLong *TooLongError
				if errors.As(err, &tooLong) != (len(line) > limit) {
					t.Fatalf("line %d of %q: %v with limit %d", i, in, err, limit)
				}
				if tooLong != nil {
					if !bytes.HasPrefix([]byte(line), tooLong.Start) {
						t.Fatalf("line %d of %q: starts with %q", i, in, tooLong.Start)
					}
					if end := line[max(0, len(line)-longEdge):]; string(tooLong.End) != end && (i < len(want)-1 || tooLong.End != nil) {
						t.Fatalf("line %d of %q: ends with %q, want %q", i, in, tooLong.End, end)
					}
					continue
				}
				if string(got) != line || err != nil || partial != (i == len(want)-1 && !strings.HasSuffix(in, "\n")) {
					t.Fatalf("line %d of %q = %q, %v, %v, want %q", i, in, got, partial, err, line)
				}
			}
			if got, _, err := l.next(); err != io.EOF {
				t.Fatalf("after the last line of %q: %q, %v, want EOF", in, got, err)
			}
		}
	})
}

func TestLinesAreTheCallers(t *testing.T) {
	var in strings.Builder
	sizes := []int{10, idleBuffer, 10, 3 * idleBuffer, 100, idleBuffer / 2, 10}
	for i, n := range sizes {
		in.WriteString(strings.Repeat(string(rune('a'+i)), n) + "\n")
	}
	l := &lineReader{src: strings.NewReader(in.String()), limit: 1 << 20}
	var kept [][]byte
	for range sizes {
		line, _, err := l.next()
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, line)
		_ = append(line, "overwritten"...) // must not reach the next line
	}
	for i, n := range sizes {
		if want := strings.Repeat(string(rune('a'+i)), n); string(kept[i]) != want {
			t.Errorf("line %d of %d bytes was overwritten", i, n)
		}
	}
}

func BenchmarkLines(b *testing.B) {
	for _, n := range []int{100, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			line := append(bytes.Repeat([]byte("x"), n), '\n')
			l := &lineReader{src: &loop{data: line}, limit: 2 << 20}
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				got, _, err := l.next()
				if err != nil || len(got) != n {
					b.Fatal(len(got), err)
				}
				PutBuffer(got)
			}
		})
	}
}

func BenchmarkCommandEcho(b *testing.B) {
	for _, n := range []int{100, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			c, err := StartCommand(CommandOptions{Argv: []string{"cat"}, Environ: []string{"PATH=/bin:/usr/bin"}})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			msg := []byte("[" + strings.Repeat(" ", n-2) + "]")
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				werr := make(chan error, 1)
				go func() { werr <- c.Write(msg) }() // ends with the write
				if _, err := c.Read(); err != nil {
					b.Fatal(err)
				}
				if err := <-werr; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// loop reads the same bytes over and over, a pipe's worth at most at a time.
type loop struct {
	data []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 64<<10)], l.data[l.at:])
	l.at = (l.at + n) % len(l.data)
	return n, nil
}
