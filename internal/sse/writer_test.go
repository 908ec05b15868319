package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// counter counts Write calls.
type counter struct {
	bytes.Buffer
	writes int
}

func (c *counter) Write(p []byte) (int, error) {
	c.writes++
	return c.Buffer.Write(p)
}

func TestWriterEvent(t *testing.T) {
	for _, tt := range []struct{ name, typ, id, data, want string }{
		{"data alone", "", "", "a", "data: a\n\n"},
		{"all fields", "message", "s/7", "a", "event: message\nid: s/7\ndata: a\n\n"},
		{"empty data", "", "1", "", "id: 1\ndata: \n\n"},
		{"leading space", "", "", " a", "data:  a\n\n"},
		{"LF", "", "", "a\nb", "data: a\ndata: b\n\n"},
		{"CR", "", "", "a\rb", "data: a\ndata: b\n\n"},
		{"CRLF", "", "", "a\r\nb", "data: a\ndata: b\n\n"},
		{"LF at the end", "", "", "a\n", "data: a\ndata: \n\n"},
		{"forged event", "", "", "a\n\nevent: b\ndata: c", "data: a\ndata: \ndata: event: b\ndata: data: c\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out counter
			if err := NewWriter(&out).Event(tt.typ, tt.id, []byte(tt.data)); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != tt.want || out.writes != 1 {
				t.Errorf("Event(%q) wrote %q in %d writes, want %q in 1", tt.data, got, out.writes, tt.want)
			}
			got, err := AppendEvent([]byte("x"), tt.typ, tt.id, []byte(tt.data))
			if string(got) != "x"+tt.want || err != nil {
				t.Errorf("AppendEvent(%q) = %q, %v, want x%q", tt.data, got, err, tt.want)
			}
		})
	}
}

// A type or an ID from a peer can't end its line (CWE-93).
func TestWriterRefusesInjection(t *testing.T) {
	for _, tt := range []struct{ typ, id string }{
		{"a\ndata: forged", ""},
		{"a\r", ""},
		{"", "1\r\n\r\ndata: forged"},
		{"", "1\n"},
		{"", "1\x00"},
	} {
		var out counter
		if err := NewWriter(&out).Event(tt.typ, tt.id, nil); !errors.Is(err, ErrBadField) || out.writes != 0 {
			t.Errorf("Event(%q, %q) = %v after %d writes, want ErrBadField after none", tt.typ, tt.id, err, out.writes)
		}
		if got, err := AppendEvent(nil, tt.typ, tt.id, nil); !errors.Is(err, ErrBadField) || len(got) != 0 {
			t.Errorf("AppendEvent(%q, %q) = %q, %v, want ErrBadField", tt.typ, tt.id, got, err)
		}
	}
}

// spy fails the test if it receives the large payload in another slice.
type spy struct {
	t    *testing.T
	data []byte
	seen bool
}

func (s *spy) Write(p []byte) (int, error) {
	if len(p) == len(s.data) {
		s.seen = &p[0] == &s.data[0]
	}
	return len(p), nil
}

func TestWriterDoesNotCopyLargeData(t *testing.T) {
	s := &spy{t: t, data: bytes.Repeat([]byte("x"), 1<<20)}
	w := NewWriter(s)
	if err := w.Event("message", "", s.data); err != nil {
		t.Fatal(err)
	}
	if !s.seen {
		t.Error("1 MiB of data was not written from where it lay")
	}
	if got := cap(w.buf); got > 1024 {
		t.Errorf("writer kept %d bytes, want no more than the framing", got)
	}
}

func TestWriterBufferBounded(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	data := bytes.Repeat([]byte("{\n"), 1<<19)
	if err := w.Event("", "", data); err != nil {
		t.Fatal(err)
	}
	if got := cap(w.buf); got > 3*writeSize {
		t.Errorf("writer kept %d bytes, want about %d", got, writeSize)
	}
	if ev, err := NewReader(&out, ReaderOptions{}).Next(); err != nil || !bytes.Equal(ev.Data, data) {
		t.Errorf("read back %d bytes, %v, want %d", len(ev.Data), err, len(data))
	}
}

// failing accepts a number of writes and refuses the rest.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestWriterErrors(t *testing.T) {
	large := []byte(strings.Repeat("x", 2*writeSize))
	for writes := range 3 { // framing, data, end of event
		if err := NewWriter(&failing{writes}).Event("", "", large); err != io.ErrClosedPipe {
			t.Errorf("Event with write %d failing = %v, want %v", writes, err, io.ErrClosedPipe)
		}
	}
}
