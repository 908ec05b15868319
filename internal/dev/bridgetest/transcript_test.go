package bridgetest

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An exchange is recorded at both of its ends, with names for what is random: a value that
// comes again has the same name.
func TestTranscript(t *testing.T) {
	const want = `What happens.

-- client 1: GET --
1s        > GET /stream
          > Host: host.example
2s        < 200
          < Content-Type: text/event-stream
          < Id: ID-1
2s        < data: one
3s        < data: two
5s        < rest of ID-1
5s        = end
-- server 1: GET --
1s        > GET /stream
          > Host: host.example
2s        < 200
          < Content-Type: text/event-stream
          < Id: ID-1
2s        < data: one
3s        < data: two
5s        < rest of ID-1
5s        = end
-- client 2: POST ping --
5s        > POST /
          > Host: host.example
          > Id: ID-2
          >
          > ping
6s        = the client hung up
-- server 2: POST ping --
5s        > POST /
          > Host: host.example
          > Id: ID-2
          >
          > ping
6s        = the client hung up
`
	for _, random := range []string{"abcdefgh", "stuvwxyz"} {
		synctest.Test(t, func(t *testing.T) {
			got := recordTwo(t, random).Transcript("What happens.", []Name{{"ID", regexp.MustCompile(`Id: (\S+)`)}})
			if diff := Diff(want, got); diff != "" {
				t.Errorf("transcript differs:\n%s", diff)
			}
		})
	}
}

// recordTwo records an event stream, and a request that is never answered.
func recordTwo(t *testing.T, random string) *Recorder {
	r := NewRecorder(t)
	l := Listen()
	s := &http.Server{Handler: r.Handler("server", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			<-req.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Id", random)
		time.Sleep(time.Second)
		for _, text := range []string{"data: one\n\n", "data: two\n\n", "rest of " + random} {
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
		}
	}), nameOf)}
	go s.Serve(l) // ends with Close
	reach := l.Transport()
	c := &http.Client{Transport: r.Client("client", reach, nameOf)}
	time.Sleep(time.Second)
	resp, err := c.Get("http://host.example/stream")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasPrefix(string(text), "data: one") {
		t.Errorf("ReadAll = %q, %v", text, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://host.example/", strings.NewReader("ping"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Id", "other-"+random)
	if _, err := c.Do(req); err == nil {
		t.Error("Do = nil, want a time-out")
	}
	synctest.Wait()
	reach.CloseIdleConnections()
	_ = s.Close()
	return r
}

func nameOf(body []byte) string { return string(body) }

// However long a random wait was, it is recorded as the longest.
func TestRandomWait(t *testing.T) {
	for _, took := range []time.Duration{time.Second, 1200 * time.Millisecond, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := NewRecorder(t)
			c := r.open("wire", "title")
			r.RandomWait(time.Second, 2*time.Second)
			time.Sleep(10 * time.Millisecond)
			c.add(">", "during")
			time.Sleep(took - 10*time.Millisecond)
			c.add(">", "after")
			time.Sleep(time.Minute)
			c.add(">", "later")
			want := "\n\n-- wire 1: title --\n10ms      > during\n2s        > after\n1m2s      > later\n"
			if got := r.Transcript("", nil); got != want {
				t.Errorf("after a wait of %v:\n%s", took, Diff(want, got))
			}
		})
	}
}

// Two exchanges that begin at once are in the order of their texts, whichever came first
// and whatever is random in them.
func TestTranscriptOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(t)
		for _, text := range []string{"id=aaaaaaa b", "id=zzzzzzz a"} {
			r.open("wire", "title").add(">", text)
		}
		const want = "\n\n-- wire 1: title --\n0s        > id=ID-1 a\n-- wire 2: title --\n0s        > id=ID-2 b\n"
		if got := r.Transcript("", []Name{{"ID", regexp.MustCompile(`id=(\w+)`)}}); got != want {
			t.Errorf("transcript differs:\n%s", Diff(want, got))
		}
	})
}

func TestDiff(t *testing.T) {
	const want = "intro\n-- a 1: x --\n1\n2\n3\n4\n5\n-- a 2: y --\n6\n7\n8"
	const got = "intro\n-- a 1: x --\n1\n2\n3\n4\n5\n-- a 2: y --\n6\nseven\n8\n9"
	if d := Diff(want, want); d != "" {
		t.Errorf("Diff of the same = %q", d)
	}
	const diff = "@@ -- a 2: y --\n  -- a 2: y --\n  6\n- 7\n+ seven\n  8\n+ 9\n"
	if d := Diff(want, got); d != diff {
		t.Errorf("Diff = %q, want %q", d, diff)
	}
}
