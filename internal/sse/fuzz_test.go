package sse

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// maxFuzzed bounds the streams that are read in several ways: a few bytes suffice for
// errors between pieces.
const maxFuzzed = 256

// A cut is a stream that arrives in two pieces.
type cut struct{ first, second string }

func (c *cut) Read(p []byte) (int, error) {
	if c.first == "" {
		c.first, c.second = c.second, ""
	}
	if c.first == "" {
		return 0, io.EOF
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}

// splits yields readers that deliver in pieces: byte by byte, everything with the end,
// and cut in two every step bytes.
func splits(in string, step int) iter.Seq2[int, io.Reader] {
	return func(yield func(int, io.Reader) bool) {
		ok := yield(-1, iotest.OneByteReader(strings.NewReader(in))) && yield(-2, iotest.DataErrReader(strings.NewReader(in)))
		for at := firstCut(in, step); ok && at <= len(in); at += step {
			ok = yield(at, &cut{in[:at], in[at:]})
		}
	}
}

// someSplits is a step that yields a few cuts, and others for the next stream, so that a
// fuzzer tries all of them.
func someSplits(in string) int { return len(in)/6 + 1 }

// firstCut is the first cut: an offset below step that depends on every byte.
func firstCut(in string, step int) int {
	return int(crc32.ChecksumIEEE([]byte(in)) % uint32(step))
}

// follow reads a stream to its end, and returns the number of its events and the error at
// the end, or an error for the first event that differs from want.
func follow(r *Reader, want []Event) (n int, err error) {
	for ; ; n++ {
		ev, err := r.Next()
		if err != nil {
			return n, err
		}
		if n >= len(want) || !sameEvent(ev, want[n]) {
			return n, fmt.Errorf("event %d is %s", n, show([]Event{ev}))
		}
	}
}

var fuzzedStreams = []string{
	"data: a\n\n", "data: a\r\n\r\ndata: b\r\r\n\n", "\ufeffid: 1\ndata\n\nevent: x\ndata:y\ndata: z\n\n",
	":c\nretry: 12\nid: \x00\ndata: a\n:c\rdata:b\r\n\r\n", "\xef\xbb", "id: 7\n\ndata: \n\ndata: cut",
}

// FuzzReader compares the Reader, reading in pieces, with the reference.
func FuzzReader(f *testing.F) {
	for _, seed := range fuzzedStreams {
		f.Add(seed)
	}
	buf := make([]byte, maxFuzzed)
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) <= maxFuzzed {
			compareWithReference(t, in, someSplits(in), buf)
		}
	})
}

// TestReaderOfEverySplit cuts streams at every point.
func TestReaderOfEverySplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	parts := append([]string{"\n", "\r", "\r\n", ":", " ", "x", "data", "data:", "data: y", "id: 2", "id:", "event: z", "retry: 9", "\ufeff"}, fuzzedStreams...)
	for range 1_000 {
		var in strings.Builder
		for range rng.IntN(12) {
			in.WriteString(parts[rng.IntN(len(parts))])
		}
		compareWithReference(t, in.String(), 1, nil)
		compareLimits(t, in.String(), rng.IntN(64)+1, 1)
	}
}

// compareWithReference reads in in pieces, with buf as the first buffer.
func compareWithReference(t *testing.T, in string, step int, buf []byte) {
	want := parseReference(in)
	want.events = slices.DeleteFunc(want.events, isEmpty)
	for at, src := range splits(in, step) {
		r := NewReader(src, ReaderOptions{Buffer: buf})
		if n, err := follow(r, want.events); err != io.EOF || n != len(want.events) {
			t.Fatalf("%q split at %d: %v after %d events, want EOF after %s", in, at, err, n, show(want.events))
		}
		if d, _ := r.Retry(); d != want.retry || r.LastEventID() != want.lastID {
			t.Fatalf("%q split at %d: retry %v, id %q, want %v, %q", in, at, d, r.LastEventID(), want.retry, want.lastID)
		}
	}
}

// FuzzReaderLimit checks that the limit does not depend on the split or on other options.
func FuzzReaderLimit(f *testing.F) {
	f.Add("data: a\r\n\r\n: comment\ndata: long\n\n", 9)
	f.Add("data:a\r\r\ndata: b\n\n", 7)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		if limit = limit%64 + 1; len(in) <= maxFuzzed && limit > 0 {
			compareLimits(t, in, limit, someSplits(in))
		}
	})
}

// compareLimits reads in whole and in pieces, up to an event beyond the limit.
func compareLimits(t *testing.T, in string, limit, step int) {
	want, wantErr := all(NewReader(strings.NewReader(in), ReaderOptions{MaxEventSize: limit}))
	for at, src := range splits(in, step) {
		opts := ReaderOptions{MaxEventSize: limit, Buffer: make([]byte, 3), Comment: func([]byte) {}}
		n, err := follow(NewReader(src, opts), want)
		if n != len(want) || errors.Is(err, io.EOF) != errors.Is(wantErr, io.EOF) {
			t.Fatalf("%q split at %d: %v after %d events, want %v after %s", in, at, err, n, wantErr, show(want))
		}
	}
}

// isEmpty reports whether an event has no data: it only moves the last event ID.
func isEmpty(e Event) bool { return len(e.Data) == 0 }

var lineFeeds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// FuzzRoundTrip checks that the Reader reads what the Writer has written, except for line
// ends in data, whatever surrounds it.
func FuzzRoundTrip(f *testing.F) {
	f.Add("message", "s/1", []byte(`{"a":1}`), "keep-alive")
	f.Add("", "", []byte("a\r\n\rb\n"), "\r\n")
	f.Add("\ufeff", " 1", []byte("\ufeff"), "data: x")
	f.Fuzz(func(t *testing.T, typ, id string, data []byte, comment string) {
		var stream bytes.Buffer
		for line := range strings.SplitSeq(lineFeeds.Replace(comment), "\n") {
			stream.WriteString(": " + line + "\n")
		}
		stream.WriteByte('\n')
		if err := NewWriter(&stream).Event(typ, id, data); err != nil {
			if stream.Reset(); !errors.Is(err, ErrBadField) {
				t.Fatal(err)
			}
			return
		}
		r := NewReader(&stream, ReaderOptions{})
		events, err := all(r)
		text := lineFeeds.Replace(string(data))
		if typ == "" {
			typ = "message"
		}
		want := slices.DeleteFunc([]Event{{Type: typ, Data: []byte(text), ID: id}}, isEmpty)
		if !slices.EqualFunc(events, want, sameEvent) || err != io.EOF || len(r.Rest()) > 0 {
			t.Fatalf("read %s, %v, rest %q, want %s", show(events), err, r.Rest(), show(want))
		}
	})
}
