package sse

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// splits returns readers that deliver in the given pieces: whole, byte by byte,
// and cut in two at every point.
func splits(in string) map[int]io.Reader {
	readers := map[int]io.Reader{
		-1: iotest.OneByteReader(strings.NewReader(in)),
		-2: iotest.DataErrReader(strings.NewReader(in)),
	}
	for at := range len(in) + 1 {
		readers[at] = io.MultiReader(strings.NewReader(in[:at]), strings.NewReader(in[at:]))
	}
	return readers
}

// FuzzReader holds the Reader, fed in every way a stream can be split, against
// the reference.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "data: a\r\n\r\ndata: b\r\r\n\n", "\ufeffid: 1\ndata\n\nevent: x\ndata:y\ndata: z\n\n",
		":c\nretry: 12\nid: \x00\ndata: a\n:c\rdata:b\r\n\r\n", "\xef\xbb", "id: 7\n\ndata: \n\ndata: cut",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) > 256 {
			return // every split of it takes too long
		}
		want := parseReference(in)
		for at, src := range splits(in) {
			r := NewReader(src, ReaderOptions{KeepEmpty: true})
			events, err := all(r)
			if err != io.EOF || !slices.EqualFunc(events, want.events, sameEvent) {
				t.Fatalf("split at %d: events = %s, %v, want %s, EOF", at, show(events), err, show(want.events))
			}
			if d, _ := r.Retry(); d != want.retry || r.LastEventID() != want.lastID {
				t.Fatalf("split at %d: retry %v, id %q, want %v, %q", at, d, r.LastEventID(), want.retry, want.lastID)
			}
		}
	})
}

// FuzzReaderLimit checks that what is too large does not depend on the split,
// nor on the other options.
func FuzzReaderLimit(f *testing.F) {
	f.Add("data: a\r\n\r\n: comment\ndata: long\n\n", 9)
	f.Add("data:a\r\r\ndata: b\n\n", 7)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		if limit = limit%64 + 1; len(in) > 256 || limit < 1 {
			return
		}
		want, wantErr := all(NewReader(strings.NewReader(in), ReaderOptions{MaxEventSize: limit}))
		for at, src := range splits(in) {
			opts := ReaderOptions{MaxEventSize: limit, Buffer: make([]byte, 3), Comment: func([]byte) {}}
			events, err := all(NewReader(src, opts))
			if !slices.EqualFunc(events, want, sameEvent) || errors.Is(err, io.EOF) != errors.Is(wantErr, io.EOF) {
				t.Fatalf("split at %d: events = %s, %v, want %s, %v", at, show(events), err, show(want), wantErr)
			}
		}
	})
}

// FuzzRoundTrip checks that what the Writer writes the Reader reads, line ends
// in data aside, whatever stands around it.
func FuzzRoundTrip(f *testing.F) {
	f.Add("message", "s/1", []byte(`{"a":1}`), "keep-alive")
	f.Add("", "", []byte("a\r\n\rb\n"), "\r\n")
	f.Add("\ufeff", " 1", []byte("\ufeff"), "data: x")
	f.Fuzz(func(t *testing.T, typ, id string, data []byte, comment string) {
		var stream bytes.Buffer
		w := NewWriter(&stream)
		if err := w.Comment(comment); err != nil {
			t.Fatal(err)
		}
		if err := w.Event(typ, id, data); err != nil {
			if stream.Reset(); !errors.Is(err, ErrBadField) {
				t.Fatal(err)
			}
			return
		}
		r := NewReader(&stream, ReaderOptions{KeepEmpty: true})
		events, err := all(r)
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		if typ == "" {
			typ = "message"
		}
		want := []Event{{Type: typ, Data: []byte(text), ID: id}}
		if !slices.EqualFunc(events, want, sameEvent) || err != io.EOF || len(r.Rest()) > 0 {
			t.Fatalf("read %s, %v, rest %q, want %s", show(events), err, r.Rest(), show(want))
		}
	})
}
