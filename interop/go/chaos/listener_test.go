package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A listener follows a few resources as a careful client does: it reads them all
// once they are acknowledged, and each again when it is told of it. When its
// stream ends it listens anew.
type listener struct {
	w    *world
	uris []string

	// mu guards the fields below.
	mu       sync.Mutex
	dirty    map[string]bool // to be read
	have     map[string]int  // versions, as last read
	streams  int             // opened
	narrowed int             // of them, those acknowledged in part
	problems []string

	wake chan struct{} // capacity 1: something is dirty
}

func newListener(w *world, uris []string) *listener {
	return &listener{w: w, uris: uris, dirty: make(map[string]bool), have: make(map[string]int), wake: make(chan struct{}, 1)}
}

// run listens and reads until ctx ends.
func (l *listener) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { l.reread(ctx) }) // ends with ctx
	for ctx.Err() == nil {
		if err := l.listen(ctx); err != nil && ctx.Err() == nil {
			l.problem("%v", err)
		}
		pause(ctx, 100*time.Millisecond)
	}
	wg.Wait()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// listen opens a stream and follows it to its end. It returns an error unless it
// was refused with a reason, or ended with its result.
func (l *listener) listen(ctx context.Context) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	uris, err := json.Marshal(l.uris)
	if err != nil {
		return err
	}
	res, err := l.w.post(ctx, lastID.Add(1), "subscriptions/listen", "", fmt.Sprintf(`"notifications":{"resourceSubscriptions":%s}`, uris))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	l.mu.Lock()
	l.streams++
	l.mu.Unlock()
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && res.StatusCode == http.StatusOK {
			return fmt.Errorf("the stream broke with %q: %w", line, err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok && bytes.HasPrefix(line, []byte("{")) {
			data, ok = line, true // a refusal
		}
		if !ok && err != nil {
			return fmt.Errorf("listen = %s, %w", res.Status, err)
		}
		if ok {
			if more, err := l.take(data); err != nil || !more {
				return err
			}
		}
	}
}

// take takes a frame, and reports whether to go on.
func (l *listener) take(data []byte) (more bool, err error) {
	var m struct {
		Method        string
		Result, Error json.RawMessage
		Params        struct {
			URI           string
			Notifications struct{ ResourceSubscriptions []string }
		}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return false, fmt.Errorf("frame %q: %w", data, err)
	}
	switch {
	case m.Result != nil || m.Error != nil:
		return false, nil
	case m.Method == "notifications/subscriptions/acknowledged":
		if len(m.Params.Notifications.ResourceSubscriptions) < len(l.uris) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.narrowed++
			return false, nil
		}
		l.mark(l.uris...)
	case m.Method == "notifications/resources/updated":
		l.mark(m.Params.URI)
	}
	return true, nil
}

func (l *listener) mark(uris ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uri := range uris {
		l.dirty[uri] = true
	}
	select {
	case l.wake <- struct{}{}:
	default: // told already
	}
}

// reread reads what is dirty, again and again until that succeeds.
func (l *listener) reread(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for uri := l.next(); uri != "" && ctx.Err() == nil; uri = l.next() {
			got := l.w.read(ctx, uri)
			var version int
			switch _, err := fmt.Sscanf(got.contents, "version %d", &version); {
			case ctx.Err() != nil:
			case got.err != nil: // not answered, or not once
				l.problem("reading %s: %v", uri, got.err)
			case err != nil:
				l.mark(uri)
				pause(ctx, 50*time.Millisecond)
			default:
				l.keep(uri, version)
			}
		}
	}
}

// next takes something that is dirty.
func (l *listener) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uri := range l.dirty {
		delete(l.dirty, uri)
		return uri
	}
	return ""
}

func (l *listener) keep(uri string, version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if version < l.have[uri] {
		l.problems = append(l.problems, fmt.Sprintf("%s has version %d, and had %d", uri, version, l.have[uri]))
	}
	l.have[uri] = version
}

// behind says which of the last versions the listener does not have.
func (l *listener) behind(last map[string]int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uri := range l.uris {
		if l.have[uri] != last[uri] {
			return fmt.Sprintf("%s has version %d, the listener %d (%d streams, %d narrowed, problems %.300q)",
				uri, last[uri], l.have[uri], l.streams, l.narrowed, l.problems)
		}
	}
	return ""
}

func (l *listener) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}
