package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// all reads a stream to its end and returns its events, data copied.
func all(r *Reader) ([]Event, error) {
	var events []Event
	for {
		ev, err := r.Next()
		if err != nil {
			return events, err
		}
		ev.Data = bytes.Clone(ev.Data)
		events = append(events, ev)
	}
}

func sameEvent(a, b Event) bool {
	return a.Type == b.Type && bytes.Equal(a.Data, b.Data) && a.ID == b.ID
}

func show(events []Event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, "{%s %q %s}", ev.Type, ev.Data, ev.ID)
	}
	return b.String()
}

func TestReaderGrammar(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"LF", "data: a\n\ndata: b\n\n", `{message "a" }{message "b" }`},
		{"CR", "data: a\r\rdata: b\r\r", `{message "a" }{message "b" }`},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", `{message "a" }{message "b" }`},
		{"line ends mixed", "data: a\r\ndata: b\rdata: c\n\r\n", `{message "a\nb\nc" }`},
		{"LF after CR ends one line", "data: a\r\ndata: b\r\n\n", `{message "a\nb" }`},
		{"byte order mark", "\ufeffdata: a\n\n", `{message "a" }`},
		{"second byte order mark is text", "\ufeff\ufeffdata: a\n\ndata: b\n\n", `{message "b" }`},
		{"byte order mark later is text", "data: a\n\n\ufeffdata: b\n\n", `{message "a" }`},
		{"one space dropped", "data:  a \n\n", `{message " a " }`},
		{"no space", "data:a\n\n", `{message "a" }`},
		{"tab kept", "data:\ta\n\n", `{message "\ta" }`},
		{"colons in value", "data: {\"a\":1}\n\n", `{message "{\"a\":1}" }`},
		{"comments", ": one\ndata: a\n:two\ndata: b\n\n", `{message "a\nb" }`},
		{"type", "event: ping\ndata: a\n\ndata: b\n\n", `{ping "a" }{message "b" }`},
		{"last type wins", "event: x\nevent: y\ndata: a\n\n", `{y "a" }`},
		{"empty type", "event: x\nevent\ndata: a\n\n", `{message "a" }`},
		{"type without data", "event: x\n\ndata: a\n\n", `{message "a" }`},
		{"id stays", "id: 1\ndata: a\n\ndata: b\n\n", `{message "a" 1}{message "b" 1}`},
		{"id taken back", "id: 1\ndata: a\n\nid\ndata: b\n\n", `{message "a" 1}{message "b" }`},
		{"id with NUL", "id: 1\nid: 2\x003\ndata: a\n\n", `{message "a" 1}`},
		{"empty data passed over", "id: 1\ndata: \n\ndata: b\n\n", `{message "b" 1}`},
		{"two empty data lines", "data\ndata\n\n", `{message "\n" }`},
		{"field without colon", "data\ndata: a\n\n", `{message "\na" }`},
		{"unknown fields", "foo: 1\nDATA: x\n data: y\ndata: a\n\n", `{message "a" }`},
		{"unfinished line", "data: a\n\ndata: b", `{message "a" }`},
		{"unfinished event", "data: a\n\ndata: b\n", `{message "a" }`},
		{"not UTF-8", "data: \xff\xfe\n\n", `{message "\xff\xfe" }`},
		{"nothing", "", ``},
		{"empty lines", "\n\r\n\r\n\n", ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events, err := all(NewReader(strings.NewReader(tt.in), ReaderOptions{}))
			if got := show(events); got != tt.want || err != io.EOF {
				t.Errorf("events of %q = %s, %v, want %s, EOF", tt.in, got, err, tt.want)
			}
		})
	}
}

func TestM2L15EmptyDataOnlyMovesID(t *testing.T) {
	r := NewReader(strings.NewReader("id: s/1\ndata: \n\nid: s/2\n\nid: s/3\ndata: cut"), ReaderOptions{})
	if ev, err := r.Next(); err != io.EOF {
		t.Fatalf("Next = %q, %v, want EOF", ev.Data, err)
	}
	// The third event never completed: resuming from its ID would lose it.
	if got := r.LastEventID(); got != "s/2" {
		t.Errorf("LastEventID = %q, want %q", got, "s/2")
	}
}

func TestM2L15RestHoldsUnframedObject(t *testing.T) {
	const object = `{"jsonrpc":"2.0","id":31,"error":{"code":-32602,"message":"late"}}`
	for _, tt := range []struct{ name, tail, want string }{
		{"no line end", object, object},
		{"line end", object + "\n", object + "\n"},
		{"after a comment", ": ping\n\n: ping\n" + object, object},
		{"framed but cut", "data: " + object, "data: " + object},
		{"nothing", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := "event: message\ndata: {}\n\n" + tt.tail
			r := NewReader(iotest.OneByteReader(strings.NewReader(in)), ReaderOptions{})
			if events, err := all(r); len(events) != 1 || err != io.EOF {
				t.Fatalf("events = %s, %v, want one and EOF", show(events), err)
			}
			if got := string(r.Rest()); got != tt.want {
				t.Errorf("Rest = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReaderRetry(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"retry: 1500\n", 1500 * time.Millisecond, true},
		{"retry: 0\n", 0, true},
		{"retry: 10\nretry: 1s\n", 10 * time.Millisecond, true},
		{"retry: -1\n", 0, false},
		{"retry: +1\n", 0, false},
		{"retry\n", 0, false},
		{"retry:  1\n", 0, false},
		{"retry: 99999999999999999999\n", 9223372036854 * time.Millisecond, true},
	} {
		r := NewReader(strings.NewReader(tt.in), ReaderOptions{})
		r.Next()
		if got, ok := r.Retry(); got != tt.want || ok != tt.ok {
			t.Errorf("Retry after %q = %v, %v, want %v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestReaderComment(t *testing.T) {
	var got []string
	opts := ReaderOptions{Comment: func(text []byte) { got = append(got, string(text)) }}
	all(NewReader(strings.NewReader(": ping\n\n:\ndata: a\n:b\n\n"), opts))
	if want := []string{" ping", "", "b"}; !slices.Equal(got, want) {
		t.Errorf("comments = %q, want %q", got, want)
	}
}

// The reader does not keep bytes that it no longer needs.
func TestReaderForgetsComments(t *testing.T) {
	in := strings.Repeat(": ping\n", 100_000) + "data: a\n\n"
	r := NewReader(strings.NewReader(in), ReaderOptions{MaxEventSize: 64})
	if events, err := all(r); len(events) != 1 || err != io.EOF {
		t.Errorf("events = %s, %v, want one and EOF", show(events), err)
	}
	if got := cap(r.buf); got > initialBuffer {
		t.Errorf("buffer after comments = %d bytes, want at most %d", got, initialBuffer)
	}
}

func TestReaderMaxEventSize(t *testing.T) {
	const limit = 10
	for _, tt := range []struct {
		name, in string
		events   int
		tooLarge bool
	}{
		{"at the limit", "data: 123\n\n", 1, false}, // the line end counts
		{"one beyond", "data: 1234\n\n", 0, true},
		{"second event", "data: 1\n\ndata: 12345\n\n", 1, true},
		{"no line end", "data: 123456789", 0, true},
		{"comment", ": 3456789012\n", 0, true},
		{"many lines", "data\ndata\ndata\n\n", 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.in), ReaderOptions{MaxEventSize: limit})
			events, err := all(r)
			var large *TooLargeError
			if len(events) != tt.events || errors.As(err, &large) != tt.tooLarge {
				t.Errorf("events of %q = %s, %v", tt.in, show(events), err)
			}
			if tt.tooLarge && large.Limit != limit {
				t.Errorf("Limit = %d, want %d", large.Limit, limit)
			}
			if _, again := r.Next(); again != err {
				t.Errorf("second error = %v, want %v again", again, err)
			}
		})
	}
}

// An endless event must not cost more memory than the limit allows (CWE-770).
func TestReaderBufferBounded(t *testing.T) {
	const limit = 100_000
	endless := io.MultiReader(strings.NewReader("data: "), zeros{})
	r := NewReader(endless, ReaderOptions{MaxEventSize: limit})
	if _, err := r.Next(); !errors.As(err, new(*TooLargeError)) {
		t.Fatalf("Next = %v, want a TooLargeError", err)
	}
	if got := cap(r.buf); got > limit+initialBuffer {
		t.Errorf("buffer = %d bytes, want at most %d", got, limit+initialBuffer)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestReaderErrors(t *testing.T) {
	broken := errors.New("connection reset")
	in := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken))
	events, err := all(NewReader(in, ReaderOptions{}))
	if show(events) != `{message "a" }` || err != broken {
		t.Errorf("events = %s, %v, want a and %v", show(events), err, broken)
	}
	_, err = NewReader(idle{}, ReaderOptions{}).Next()
	if err != io.ErrNoProgress {
		t.Errorf("Next on a reader that reads nothing = %v, want %v", err, io.ErrNoProgress)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestReaderTake(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 300_000)
	var stream bytes.Buffer
	w := NewWriter(&stream)
	for i := range 4 {
		w.Event("", "", append([]byte(fmt.Sprint(i)), big...))
		w.Event("", "", []byte(fmt.Sprint("small ", i)))
	}
	r := NewReader(&stream, ReaderOptions{})
	if got := r.Take(); got != nil {
		t.Errorf("Take before Next = %q, want nil", got)
	}
	var taken [][]byte
	for {
		if _, err := r.Next(); err != nil {
			break
		}
		taken = append(taken, r.Take())
		if again := r.Take(); again != nil {
			t.Errorf("second Take = %d bytes, want nil", len(again))
		}
	}
	if len(taken) != 8 {
		t.Fatalf("%d events, want 8", len(taken))
	}
	for i := range 4 {
		if got, want := taken[2*i], append([]byte(fmt.Sprint(i)), big...); !bytes.Equal(got, want) {
			t.Errorf("big event %d was overwritten", i)
		}
		if got, want := string(taken[2*i+1]), fmt.Sprint("small ", i); got != want {
			t.Errorf("small event = %q, want %q", got, want)
		}
	}
}

func TestReaderTakeDoesNotCopyLargeData(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 1<<20)
	stream, _ := AppendEvent(nil, "", "", data)
	r := NewReader(bytes.NewReader(stream), ReaderOptions{})
	ev, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Take(); &got[0] != &ev.Data[0] {
		t.Error("Take copied 1 MiB, want the reader's buffer")
	}
}

func TestReaderLetsLargeBufferGo(t *testing.T) {
	big, _ := AppendEvent(nil, "", "", make([]byte, 1<<20))
	small := []byte("data: a\n\n")
	in := io.MultiReader(bytes.NewReader(big), bytes.NewReader(small), bytes.NewReader(small))
	r := NewReader(in, ReaderOptions{})
	all(r)
	if got := cap(r.buf); got > keptBuffer {
		t.Errorf("buffer of an idle stream = %d bytes, want at most %d", got, keptBuffer)
	}
}

// Line breaks of one kind only must not make the search for the other kind quadratic
// (CWE-407): no byte is searched twice. One that is put in where the search has been is not
// found.
func TestReaderTimeIsLinear(t *testing.T) {
	for _, kinds := range []string{"\n\r", "\r\n"} {
		const lines = 1000
		r := NewReader(nil, ReaderOptions{})
		r.buf = bytes.Repeat([]byte("data"+kinds[:1]), lines)
		for i := range lines {
			end, found := r.lineEnd()
			if want := i*len("data\n") + len("data"); !found || end != want {
				t.Fatalf("line %d, ended by %q, ends at %d, %t, want at %d", i, kinds[:1], end, found, want)
			}
			r.line = end + 1
			r.buf[lines*len("data\n")/2+1] = kinds[1]
		}
	}
}
