package extensions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A quizRun is a schedule: some tasks of one client that ask at once and in turn, which it looks
// at, answers in part, out of order, twice, under keys of other tasks and those that nobody has, and
// leaves in the middle of a request, to come back on another connection.
type quizRun struct {
	url   string
	token string // of the user, if there are some
	http  http.Client
	rng   *rand.Rand
	tasks []*quizTask
}

// A quizTask is a task of the tool quiz, as its client knows it.
type quizTask struct {
	label, id string
	rounds    []int
	questions map[string]string // by key: all that were ever asked
	answered  map[string]bool   // the keys that were
	over      bool
}

// What the tool says in the end. The right answer to a question is its message.
type quizCount struct {
	Asked, Right, Refused int
	Wrong                 []string
}

func newQuiz(url, label string, seed uint64) *quizRun {
	q := &quizRun{url: url, rng: rand.New(rand.NewPCG(seed, 1)), http: http.Client{Transport: &http.Transport{}}}
	for i := range 2 + q.rng.IntN(19) {
		t := &quizTask{label: fmt.Sprintf("%s/%d", label, i), questions: make(map[string]string), answered: make(map[string]bool)}
		for range 1 + q.rng.IntN(3) {
			t.rounds = append(t.rounds, 1+q.rng.IntN(4))
		}
		q.tasks = append(q.tasks, t)
	}
	return q
}

// run makes the tasks and goes on until all are over, and returns the first fault.
func (q *quizRun) run(ctx context.Context) error {
	defer q.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for _, t := range q.tasks {
		if err := q.create(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.label, err)
		}
	}
	for open := q.tasks; len(open) > 0; open = slices.DeleteFunc(slices.Clone(open), func(t *quizTask) bool { return t.over }) {
		t := open[q.rng.IntN(len(open))]
		if q.rng.IntN(8) == 0 {
			q.leave(ctx, func(ctx context.Context) { _ = q.get(ctx, t, new(json.RawMessage)) }) // it is not of interest
		}
		asked, err := q.look(ctx, t)
		if err == nil && len(asked) > 0 {
			err = q.answer(ctx, t, asked)
		} else if err == nil {
			time.Sleep(10 * time.Millisecond) // the server works
		}
		if err != nil {
			return fmt.Errorf("%s, task %s: %w", t.label, t.id, err)
		}
	}
	return nil
}

func (q *quizRun) create(ctx context.Context, t *quizTask) error {
	rounds, _ := json.Marshal(t.rounds) // numbers
	var made struct{ ResultType, TaskID string }
	err := q.send(ctx, "tools/call", fmt.Sprintf(`"name": "quiz", "arguments": {"label": %q, "rounds": %s}`, t.label, rounds), "quiz", &made)
	if err == nil && (made.ResultType != "task" || made.TaskID == "") {
		err = fmt.Errorf("no task came of it, but %+v", made)
	}
	for _, other := range q.tasks {
		if err == nil && other.id == made.TaskID {
			err = fmt.Errorf("it got the id of %s", other.label)
		}
	}
	t.id = made.TaskID
	return err
}

// leave begins a request and goes before it is answered, and all its connections with it.
func (q *quizRun) leave(ctx context.Context, request func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(q.rng.IntN(2000))*time.Microsecond)
	defer cancel()
	request(ctx)
	q.http.CloseIdleConnections()
}

func (q *quizRun) get(ctx context.Context, t *quizTask, into any) error {
	return q.send(ctx, "tasks/get", fmt.Sprintf(`"taskId": %q`, t.id), t.id, into)
}

// look looks at a task, holds that it asks nothing amiss, and returns the keys of what it asks.
func (q *quizRun) look(ctx context.Context, t *quizTask) (asked []string, err error) {
	var task struct {
		Status        string
		InputRequests map[string]struct{ Params struct{ Message string } }
		Result        struct{ Content []struct{ Text string } }
	}
	if err := q.get(ctx, t, &task); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(task.InputRequests)) {
		message := task.InputRequests[key].Params.Message
		switch {
		case !strings.HasPrefix(message, t.label+"/"):
			return nil, fmt.Errorf("it asks the question of another: %q", message)
		case t.answered[key]:
			return nil, fmt.Errorf("it asks %q again, which was answered", message)
		case t.questions[key] != "" && t.questions[key] != message:
			return nil, fmt.Errorf("key %s was of %q, and is of %q", key, t.questions[key], message)
		}
		t.questions[key] = message
		asked = append(asked, key)
	}
	switch {
	case (task.Status == "input_required") != (len(asked) > 0):
		return nil, fmt.Errorf("it is %s with %d questions", task.Status, len(asked))
	case task.Status == "completed" && len(task.Result.Content) == 1:
		t.over = true
		return nil, t.judge(task.Result.Content[0].Text)
	case task.Status != "working" && task.Status != "input_required":
		return nil, fmt.Errorf("it is %s", task.Status)
	}
	return asked, nil
}

// judge holds what the tool says in the end.
func (t *quizTask) judge(text string) error {
	var got quizCount
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return fmt.Errorf("it ended with %q: %w", text, err)
	}
	want := 0
	for _, n := range t.rounds {
		want += n
	}
	if got.Asked != want || got.Right != want || got.Refused != 0 || len(got.Wrong) != 0 || len(t.questions) != want {
		return fmt.Errorf("it ended with %+v after %d questions here, want %d right", got, len(t.questions), want)
	}
	return nil
}

// answer answers some of what a task asks, in any order, and more that is to be ignored.
func (q *quizRun) answer(ctx context.Context, t *quizTask, asked []string) error {
	q.rng.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
	given := make(map[string]string)
	for _, key := range asked[:1+q.rng.IntN(len(asked))] {
		given[key] = t.questions[key]
		t.answered[key] = true
	}
	for key := range t.answered { // some once more, and wrong
		if given[key] == "" && q.rng.IntN(2) == 0 {
			given[key] = "too late"
		}
	}
	given["nobody-has-this"] = "nothing"
	for key := range q.foreign(t) {
		given[key] = "of another"
	}
	responses := make(map[string]any)
	for key, echo := range given {
		responses[key] = map[string]any{"action": "accept", "content": map[string]string{"echo": echo}}
	}
	text, err := json.Marshal(responses)
	if err != nil {
		return err
	}
	update := fmt.Sprintf(`"taskId": %q, "inputResponses": %s`, t.id, text)
	if q.rng.IntN(8) == 0 {
		q.leave(ctx, func(ctx context.Context) { _ = q.send(ctx, "tasks/update", update, t.id, new(json.RawMessage)) }) // it may have arrived
	}
	for range 1 + q.rng.IntN(2) { // as a client that lost the first acknowledgement
		if err := q.send(ctx, "tasks/update", update, t.id, new(json.RawMessage)); err != nil {
			return err
		}
	}
	return nil
}

// foreign returns keys of other tasks that can't be the task's own: while a question of a round is
// open, of which all were seen, no further one is asked.
func (q *quizRun) foreign(t *quizTask) map[string]bool {
	keys := make(map[string]bool)
	seen := 0
	for _, n := range t.rounds {
		if seen += n; seen == len(t.questions) && len(t.answered) < seen {
			for _, other := range q.tasks {
				for key := range other.questions {
					keys[key] = t.questions[key] == ""
				}
			}
		}
	}
	maps.DeleteFunc(keys, func(_ string, foreign bool) bool { return !foreign })
	return keys
}

// send sends a request that declares the extension, and reads its result into what is given.
func (q *quizRun) send(ctx context.Context, method, params, name string, into any) error {
	meta := strings.Replace(taskMeta, `"extensions"`, `"elicitation": {"form": {}}, "extensions"`, 1)
	body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 7, "method": %q, "params": {%s, "_meta": {%s}}}`, method, params, meta)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {modernRevision}, "Mcp-Method": {method}, "Mcp-Name": {name}}
	if q.token != "" {
		req.Header.Set("Authorization", "Bearer "+q.token)
	}
	res, err := q.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if i := strings.LastIndex(string(text), "data:"); err == nil && i >= 0 && strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text = text[i+len("data:"):]
	}
	var m struct{ Result json.RawMessage }
	if err = errors.Join(err, json.Unmarshal(text, &m)); err != nil || m.Result == nil {
		return fmt.Errorf("%s was answered by %s: %v", method, text, err)
	}
	return json.Unmarshal(m.Result, into)
}

// playQuiz plays so many schedules on an endpoint, some at a time.
func playQuiz(t *testing.T, url string) {
	t.Helper()
	seed := rig.Seed(t)
	n := int(rig.Int(t, "SCHEDULES", 20))
	err := rig.Each(n, 8, func(i int) error { return newQuiz(url, fmt.Sprint(i), seed+uint64(i)).run(t.Context()) })
	if err != nil {
		t.Error(err)
	}
}

// TestT01QuizOnRust plays with tasks of a server of the client's own era.
func TestT01QuizOnRust(t *testing.T) {
	s := newServers["rmcp"]
	if s == nil {
		t.Skip("no cargo has built it")
	}
	playQuiz(t, startTasks(t, map[string]*taskServer{"rmcp": s}, "").bridge+"rmcp-pipe")
}

// TestT13Quiz plays with tasks of servers of 2025-11-25, over HTTP and a pipe: no question is
// lost, doubled or given to the wrong task, and for none of them two tasks/result are open.
func TestT13Quiz(t *testing.T) {
	w := startTasks(t, map[string]*taskServer{"typescript": oldServers["typescript"]}, "")
	for _, name := range []string{"typescript", "typescript-pipe"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playQuiz(t, w.bridge+name)
			judgeLedger(t, w.bridge+name)
		})
	}
}

// TestT04Quiz has callToolStream run many tasks at once on a server of its own era.
func TestT04Quiz(t *testing.T) {
	w := startTasks(t, map[string]*taskServer{"typescript": oldServers["typescript"]}, "")
	for _, name := range []string{"typescript", "typescript-pipe"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streamQuiz(t, w.bridge+name)
			if name == "typescript" { // over a pipe the client had a process of its own
				judgeLedger(t, w.bridge+name)
			}
		})
	}
}

// TestT25Quiz has it run them on a server of 2026-07-28.
func TestT25Quiz(t *testing.T) {
	s := newServers["rmcp"]
	if s == nil {
		t.Skip("no cargo has built it")
	}
	streamQuiz(t, startTasks(t, map[string]*taskServer{"rmcp": s}, ", tasks: on").bridge+"rmcp-pipe")
}

// streamQuiz has one client of 2025-11-25 run many tasks at once: each question comes once, says
// whose it is, and gets its answer.
func streamQuiz(t *testing.T, url string) {
	t.Helper()
	var got struct {
		Counts []struct {
			quizCount
			Want int
		}
		Twice     int
		Misplaced []json.RawMessage
	}
	errand := taskErrand{target: target{URL: url}, Label: t.Name(), Quiz: 20}
	ask(t, oldClients["stream"].argv, errand, &got)
	for i, c := range got.Counts {
		if c.Asked != c.Want || c.Right != c.Want || c.Refused != 0 || len(c.Wrong) > 0 {
			t.Errorf("task %d ended with %+v", i, c)
		}
	}
	if len(got.Counts) != errand.Quiz || got.Twice > 0 || len(got.Misplaced) > 0 {
		t.Errorf("%d tasks ended, %d questions came twice, and to another task %s", len(got.Counts), got.Twice, got.Misplaced)
	}
}

// judgeLedger asks node/tasks-server.mjs what it has seen of its tasks, as a client that declares
// what the schedules do, which is therefore served by the same process.
func judgeLedger(t *testing.T, url string) {
	t.Helper()
	var ledger map[string]struct {
		Open, Most, Looks, Cancels int
		Questions                  []struct {
			Message string
			Answers int
		}
	}
	var told struct{ Content []struct{ Text string } }
	if err := newQuiz(url, "", 0).send(t.Context(), "tools/call", `"name": "ledger", "arguments": {}`, "ledger", &told); err != nil || len(told.Content) != 1 {
		t.Fatalf("the ledger is %+v, %v", told, err)
	}
	if err := json.Unmarshal([]byte(told.Content[0].Text), &ledger); err != nil {
		t.Fatalf("the ledger is %+v: %v", told, err)
	}
	asked := 0
	for id, task := range ledger {
		if task.Most > 1 {
			t.Errorf("%d tasks/result of %s were open at once, want 1", task.Most, id)
		}
		for _, q := range task.Questions {
			if asked++; q.Answers > 1 {
				t.Errorf("question %q of %s was answered %d times", q.Message, id, q.Answers)
			}
		}
	}
	t.Logf("%d tasks asked %d questions", len(ledger), asked)
	if asked == 0 {
		t.Error("no task asked anything, which proves nothing")
	}
}
