package http1

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// Further fields are sent in place of those of the same names, whoever sends the request, and
// leave a shared header as it is.
func TestFields(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Traceparent", "Tracestate", "X-Own"} {
			_, _ = io.WriteString(w, strings.Join(r.Header[name], "|")+"\n")
		}
	})
	lean := NewTransport(nil)
	defer lean.CloseIdleConnections()
	shared := http.Header{"Traceparent": {"former", "another"}, "X-Own": {"1"}}
	fields := []Field{{"Traceparent", parent}, {"Tracestate", "a=1"}, {"Tracestate", "b=2"}}
	for name, send := range map[string]func(*http.Request) (*http.Response, error){
		"itself":    func(r *http.Request) (*http.Response, error) { return lean.RoundTripWith(r, fields) },
		"the other": func(r *http.Request) (*http.Response, error) { return lean.pass(Merged(r, fields)) },
	} {
		r := newRequest(t.Context(), "POST", s.URL, []byte("{}"))
		r.Header = shared
		resp, err := send(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := parent + "\na=1|b=2\n1\n"; string(text) != want || err != nil {
			t.Errorf("%s sent %q, %v; want %q", name, text, err, want)
		}
		if len(shared) != 2 || len(shared["Traceparent"]) != 2 {
			t.Errorf("%s changed the header: %v", name, shared)
		}
	}
	if r := newRequest(t.Context(), "GET", s.URL, nil); Merged(r, nil) != r {
		t.Error("a copy without a reason")
	}
}

// Fields are checked as those of a header are: a line break would begin another one (CWE-93).
func TestFieldsCannotBeSplit(t *testing.T) {
	for _, f := range []Field{{"Tracestate", "a=1\r\nX-Evil: 1"}, {"X Evil", "1"}, {"X-Evil: 1\r\nA", "1"}} {
		r := newRequest(t.Context(), "GET", "http://example.com", nil)
		if text, err := appendHead(nil, r, []Field{f}, false); err == nil {
			t.Errorf("%q is sent as %q", f, text)
		}
	}
}

// Fields cost no memory.
func TestFieldsAllocateNothing(t *testing.T) {
	r := newRequest(t.Context(), "GET", "http://example.com/mcp", nil)
	r.Header = http.Header{"Accept": {"application/json"}, "Mcp-Session-Id": {"1"}}
	buf := make([]byte, 0, 1024)
	head := func(fields []Field) float64 {
		return testing.AllocsPerRun(100, func() {
			if _, err := appendHead(buf, r, fields, false); err != nil {
				t.Fatal(err)
			}
		})
	}
	without, with := head(nil), head([]Field{{"Traceparent", parent}})
	if with != without {
		t.Errorf("%v allocations with a field, %v without", with, without)
	}
}
