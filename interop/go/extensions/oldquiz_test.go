package extensions

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// An oldQuiz is a schedule of a client of 2025-11-25: some tasks that ask at once and in turn. It waits
// in tasks/result, loses the stream and resumes it or asks again, answers questions in any order, twice,
// and under ids that nobody has, and vanishes, to come back in another session.
type oldQuiz struct {
	url  string
	http http.Client
	rng  *rand.Rand

	mu      sync.Mutex // guards what is below
	session string
	number  int // of the session, for questions of former ones
	last    int // id of a request
	tasks   []*oldTask
	open    []oldQuestion
	heard   map[string]string // by message: what became of questions of this session, to tell it
	fault   error
	streams sync.WaitGroup
}

// An oldTask is a task of the tool quiz, as its client knows it.
type oldTask struct {
	label, id string
	want      int               // questions
	asked     map[string]string // in this session: the ids of its questions
	over      bool
	stop      context.CancelFunc // ends the stream of tasks/result; nil without one
	event     string             // the last id on it
}

type oldQuestion struct {
	id      json.RawMessage
	message string
}

// run makes the tasks and goes on until all are over, and returns the first fault.
func (q *oldQuiz) run(ctx context.Context, label string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer q.http.CloseIdleConnections()
	defer q.streams.Wait()
	defer cancel()
	if err := q.enter(ctx); err != nil {
		return err
	}
	for i := range 2 + q.rng.IntN(19) {
		if err := q.create(ctx, fmt.Sprintf("%s/%d", label, i)); err != nil {
			return fmt.Errorf("%s/%d: %w", label, i, err)
		}
	}
	for {
		q.mu.Lock()
		over, fault, at := !slices.ContainsFunc(q.tasks, func(t *oldTask) bool { return !t.over }), q.fault, q.state()
		q.mu.Unlock()
		if fault != nil || over {
			return fault
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: it takes too long: %s", label, at)
		}
		if err := q.act(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", label, err)
		}
	}
}

// state tells of tasks that are not over. Its caller holds mu.
func (q *oldQuiz) state() string {
	var text []string
	for _, t := range q.tasks {
		if !t.over {
			text = append(text, fmt.Sprintf("%s (waits %t, asked %d of %d here)", t.label, t.stop != nil, len(t.asked), t.want))
		}
	}
	return strings.Join(text, ", ") + fmt.Sprintf(", session %d, %d questions open", q.number, len(q.open))
}

// act does one thing at random.
func (q *oldQuiz) act(ctx context.Context) error {
	q.mu.Lock()
	t := q.tasks[q.rng.IntN(len(q.tasks))]
	over, waits, open := t.over, t.stop != nil, len(q.open)
	q.mu.Unlock()
	switch n := q.rng.IntN(40); {
	case n == 0:
		return q.vanish(ctx)
	case n < 4 && waits:
		q.cut(t)
	case n < 8 && !over:
		_, err := q.ask(ctx, "tasks/get", fmt.Sprintf(`"taskId": %q`, t.id))
		return err
	case !over && !waits:
		q.wait(ctx, t)
	case open > 0:
		return q.answer(ctx)
	default:
		time.Sleep(5 * time.Millisecond) // the server works
	}
	return nil
}

// enter opens a session.
func (q *oldQuiz) enter(ctx context.Context) error {
	q.mu.Lock()
	q.session, q.open, q.heard = "", nil, make(map[string]string)
	q.number++
	q.mu.Unlock()
	_, err := q.ask(ctx, "initialize", `"protocolVersion": "`+legacyRevision+`", "capabilities": {"elicitation": {"form": {}}}, "clientInfo": {"name": "interop", "version": "1"}`)
	if err == nil {
		err = q.send(ctx, `{"jsonrpc": "2.0", "method": "notifications/initialized"}`)
	}
	return err
}

func (q *oldQuiz) create(ctx context.Context, label string) error {
	t := &oldTask{label: label, asked: make(map[string]string)}
	var rounds []int
	for range 1 + q.rng.IntN(3) {
		rounds = append(rounds, 1+q.rng.IntN(4))
		t.want += rounds[len(rounds)-1]
	}
	text, _ := json.Marshal(rounds) // numbers
	result, err := q.ask(ctx, "tools/call", fmt.Sprintf(`"name": "quiz", "arguments": {"label": %q, "rounds": %s}, "task": {"ttl": 600000}`, label, text))
	var made struct {
		Task struct{ TaskID, Status string }
	}
	if err == nil {
		err = json.Unmarshal(result, &made)
	}
	if t.id = made.Task.TaskID; err == nil && t.id == "" {
		err = fmt.Errorf("no task came of it, but %s", result)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks = append(q.tasks, t)
	return err
}

// vanish ends the session and all its streams, and comes back in another. What was asked and not
// answered is asked again.
func (q *oldQuiz) vanish(ctx context.Context) error {
	for _, t := range q.tasks {
		q.cut(t)
	}
	q.streams.Wait()
	req, err := q.request(ctx, http.MethodDelete, "")
	if err != nil {
		return err
	}
	res, err := q.http.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	for _, t := range q.tasks {
		t.event, t.asked = "", make(map[string]string)
	}
	return q.enter(ctx)
}

// cut loses the stream of a task.
func (q *oldQuiz) cut(t *oldTask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.stop != nil {
		t.stop()
		t.stop = nil
	}
}

// wait waits for a task's result: on a stream that was cut, from where it was cut, or in a new request.
func (q *oldQuiz) wait(ctx context.Context, t *oldTask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	method, body := http.MethodGet, ""
	if t.event == "" {
		q.last++
		method, body = http.MethodPost, fmt.Sprintf(`{"jsonrpc": "2.0", "id": %d, "method": "tasks/result", "params": {"taskId": %q}}`, q.last, t.id)
	}
	ctx, cancel := context.WithCancel(ctx)
	req, err := q.requestLocked(ctx, method, body)
	if err != nil {
		q.fault = err
	}
	if t.event != "" {
		req.Header.Set("Last-Event-ID", t.event)
	}
	t.stop = cancel
	number := q.number
	q.streams.Go(func() { // ends with the stream
		defer cancel()
		err := q.read(t, number, req)
		q.mu.Lock()
		defer q.mu.Unlock()
		if err != nil && ctx.Err() == nil && q.fault == nil {
			q.fault = fmt.Errorf("%s: %w", t.label, err)
		}
		if ctx.Err() == nil {
			t.stop = nil
		}
	})
}

func (q *oldQuiz) read(t *oldTask, number int, req *http.Request) error {
	res, err := q.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		return q.take(t, number, text)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	event := ""
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id:"); ok {
			event = strings.TrimSpace(id)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && strings.TrimSpace(data) != "" {
			if err := q.take(t, number, []byte(data)); err != nil {
				return err
			}
		}
		if lines.Text() == "" && event != "" { // the event is whole
			q.mu.Lock()
			if number == q.number && req.Context().Err() == nil {
				t.event = event
			}
			q.mu.Unlock()
		}
	}
	return lines.Err()
}

// take takes in a message on a stream of a task, and holds that it is that task's.
func (q *oldQuiz) take(t *oldTask, number int, text []byte) error {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Message string
			Meta    map[string]struct{ TaskID string } `json:"_meta"`
		}
		Result *struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case m.Method == "elicitation/create":
		switch {
		case m.Params.Meta["io.modelcontextprotocol/related-task"].TaskID != t.id || !strings.HasPrefix(m.Params.Message, t.label+"/"):
			return fmt.Errorf("it is asked %s", text)
		case number != q.number:
		case t.asked[m.Params.Message] != "":
			if t.asked[m.Params.Message] != string(m.ID) { // else the stream was cut within the event, and has it again
				return fmt.Errorf("it is asked %q again in session %d, as %s: it was%s and%s", m.Params.Message, number, m.ID, q.heard[m.Params.Message], q.heard[t.label])
			}
		default:
			t.asked[m.Params.Message] = string(m.ID)
			q.open = append(q.open, oldQuestion{m.ID, m.Params.Message})
			q.heard[m.Params.Message] += fmt.Sprintf(" asked as %s,", m.ID)
		}
		return nil
	case m.Method == "notifications/cancelled":
		q.heard[t.label] += fmt.Sprintf(" %s of the task was withdrawn,", text)
		return nil
	case m.Method != "":
		return nil
	case m.Result == nil || len(m.Result.Content) != 1:
		return fmt.Errorf("it came to %s", text)
	}
	var got quizCount
	if err := json.Unmarshal([]byte(m.Result.Content[0].Text), &got); err != nil || got.Asked != t.want || got.Right != t.want || got.Refused != 0 || len(got.Wrong) != 0 {
		return fmt.Errorf("it came to %s, %v, want %d right", text, err, t.want)
	}
	t.over = true
	return nil
}

// answer answers an open question, perhaps twice, after an answer to none.
func (q *oldQuiz) answer(ctx context.Context) error {
	q.mu.Lock()
	i := q.rng.IntN(len(q.open))
	o := q.open[i]
	q.open = slices.Delete(q.open, i, i+1)
	q.heard[o.message] += " answered,"
	q.mu.Unlock()
	if q.rng.IntN(4) == 0 {
		if err := q.respond(ctx, []byte(`"nobody-has-this"`), "nothing"); err != nil {
			return err
		}
	}
	if err := q.respond(ctx, o.id, o.message); err != nil || q.rng.IntN(4) > 0 {
		return err
	}
	return q.respond(ctx, o.id, "too late")
}

func (q *oldQuiz) respond(ctx context.Context, id json.RawMessage, echo string) error {
	return q.send(ctx, fmt.Sprintf(`{"jsonrpc": "2.0", "id": %s, "result": {"action": "accept", "content": {"echo": %q}}}`, id, echo))
}

func (q *oldQuiz) request(ctx context.Context, method, body string) (*http.Request, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.requestLocked(ctx, method, body)
}

func (q *oldQuiz) requestLocked(ctx context.Context, method, body string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, q.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	if q.session != "" {
		req.Header.Set("Mcp-Session-Id", q.session)
		req.Header.Set("MCP-Protocol-Version", legacyRevision)
	}
	return req, nil
}

// send sends what has no answer.
func (q *oldQuiz) send(ctx context.Context, body string) error {
	req, err := q.request(ctx, http.MethodPost, body)
	if err != nil {
		return err
	}
	res, err := q.http.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// ask sends a request and returns its result.
func (q *oldQuiz) ask(ctx context.Context, method, members string) (json.RawMessage, error) {
	q.mu.Lock()
	q.last++
	body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": %d, "method": %q, "params": {%s}}`, q.last, method, members)
	q.mu.Unlock()
	req, err := q.request(ctx, http.MethodPost, body)
	if err != nil {
		return nil, err
	}
	res, err := q.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if id := res.Header.Get("Mcp-Session-Id"); id != "" && method == "initialize" {
		q.mu.Lock()
		q.session = id
		q.mu.Unlock()
	}
	if i := strings.LastIndex(string(text), "data:"); err == nil && i >= 0 && strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text = text[i+len("data:"):]
	}
	var m struct{ Result json.RawMessage }
	if err != nil || json.Unmarshal(text, &m) != nil || m.Result == nil {
		return nil, fmt.Errorf("%s was answered by %s: %v", method, text, err)
	}
	return m.Result, nil
}

// TestT25QuizSchedules plays schedules of clients of 2025-11-25 with servers of 2026-07-28: no question
// is lost, doubled, or given to the wrong task.
func TestT25QuizSchedules(t *testing.T) {
	w := startTasks(t, newServers, ", tasks: on")
	for _, name := range []string{"fastmcp", "rmcp-pipe"} {
		if name == "rmcp-pipe" && newServers["rmcp"] == nil {
			continue // no cargo has built it
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rig.Seed(t)
			err := rig.Each(int(rig.Int(t, "SCHEDULES", 10)), 8, func(i int) error {
				q := &oldQuiz{url: w.bridge + name, rng: rand.New(rand.NewPCG(seed+uint64(i), 25)), http: http.Client{Transport: &http.Transport{}}}
				return q.run(t.Context(), fmt.Sprint(i))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
