package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A life is what a client does with one task: it calls a tool, and does steps in turn.
type life struct {
	label, tool, arguments string
	shown                  string // what stands for the label in what is seen
	progress               bool
	plain                  bool // a call without a task
	endless                bool // it goes on until it is cancelled
	steps                  []string
	asks                   int    // how many questions the tool asks at once
	reply                  string // the action of the answers
	seed                   uint64 // of the order of its answers
}

// kindsOfLives is how many lives have one of each kind.
const kindsOfLives = 10

// drawLives draws n lives from a seed. Their steps have outcomes that no delay changes.
func drawLives(seed uint64, n int) []*life {
	r := rand.New(rand.NewPCG(seed, 34))
	some := func(steps ...string) (drawn []string) {
		for _, s := range steps {
			for range r.IntN(3) {
				drawn = append(drawn, s)
			}
		}
		return drawn
	}
	ends := func(tool string) func(*life) {
		return func(l *life) {
			l.tool, l.arguments = tool, `{}`
			l.steps = slices.Concat(some("unknown"), []string{"settle", "told", "look"}, some("look", "settle", "stray", "cancel"))
		}
	}
	kinds := []func(*life){
		func(l *life) {
			l.tool, l.arguments = "slow_compute", fmt.Sprintf(`{"seconds": %.1f, "label": %q}`, 0.1*float64(1+r.IntN(6)), l.label)
			l.progress = r.IntN(2) == 0
			l.steps = slices.Concat(some("stray", "list"), []string{"settle", "told"}, some("look", "stray"), some("cancel", "settle", "look"), []string{"tally"})
		},
		func(l *life) {
			l.tool, l.arguments = "slow_compute", fmt.Sprintf(`{"seconds": 600, "label": %q}`, l.label)
			l.endless = true
			l.steps = slices.Concat(some("look", "list", "unknown", "stray", "look"), []string{"cancel", "cancelled"}, some("look", "cancel"), []string{"tally"})
		},
		ends("failing_job"), ends("protocol_error_job"), ends("own_id"),
		func(l *life) {
			l.tool, l.arguments, l.asks = "confirm_delete", fmt.Sprintf(`{"filename": %q}`, l.label), 1
			l.reply = []string{"accept", "decline", "cancel"}[r.IntN(3)]
			l.steps = slices.Concat(some("asking", "stray"), []string{"settle"}, some("look", "settle", "cancel"))
		},
		func(l *life) {
			l.tool, l.arguments, l.asks, l.reply = "multi_input", `{}`, 2, "accept"
			l.steps = slices.Concat(some("stray", "asking", "list"), []string{"settle"}, some("look", "settle"))
		},
		func(l *life) {
			l.tool, l.arguments, l.asks = "multi_input", `{}`, 2
			l.steps = slices.Concat([]string{"asking"}, some("stray", "list"), []string{"cancel", "cancelled"}, some("look", "cancel"))
		},
		func(l *life) { l.tool, l.arguments, l.plain = "greet", fmt.Sprintf(`{"name": %q}`, l.label), true },
		func(l *life) {
			l.tool, l.arguments, l.plain = "slow_compute", fmt.Sprintf(`{"seconds": 0.2, "label": %q}`, l.label), true
		},
	}
	lives := make([]*life, n)
	for i := range lives {
		lives[i] = &life{label: fmt.Sprintf("%d-%d", seed, i), seed: r.Uint64()}
		kinds[i%len(kinds)](lives[i])
	}
	return lives
}

// as returns the life for one connection, whose server is to tell its label from those of others.
func (l *life) as(name string) *life {
	own := *l
	own.label = strings.ReplaceAll(name, " ", "-") + "/" + l.label
	own.arguments = strings.ReplaceAll(l.arguments, fmt.Sprintf("%q", l.label), fmt.Sprintf("%q", own.label))
	own.shown = l.label
	return &own
}

// An event is what a client saw at one step of a life.
type event struct{ step, text string }

func (e event) failed() bool { return strings.HasPrefix(e.text, "error ") }

// A taskPlayer plays lives with an SDK's client, several at once.
type taskPlayer struct {
	c      *steer.Client
	legacy bool
	hears  bool // its server's notifications pass as they are
	to     remote.Target

	mu sync.Mutex
	// by the id of a task, guarded by mu:
	asked map[string]chan steer.Question
	told  map[string]map[string]bool // the statuses that it was told of
}

func (p *taskPlayer) take(q steer.Question) {
	var params struct {
		Meta map[string]struct{ TaskID string } `json:"_meta"`
	}
	_ = json.Unmarshal(q.Params, &params) // a question without a task is nobody's
	p.questions(params.Meta["io.modelcontextprotocol/related-task"].TaskID) <- q
}

func (p *taskPlayer) questions(id string) chan steer.Question {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked[id] == nil {
		p.asked[id] = make(chan steer.Question, 1000)
	}
	return p.asked[id]
}

// hear takes in a notification.
func (p *taskPlayer) hear(l remote.Line) {
	var task struct{ TaskID, Status string }
	if l.Method != "notifications/tasks/status" || json.Unmarshal(l.Params, &task) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told[task.TaskID] == nil {
		p.told[task.TaskID] = make(map[string]bool)
	}
	p.told[task.TaskID][task.Status] = true
}

func (p *taskPlayer) wasTold(id, status string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told[id][status]
}

// A living is a life while it is played.
type living struct {
	*life
	p      *taskPlayer
	ctx    context.Context
	id     string
	status string // at its last look
	events []event
	rng    *rand.Rand
	like   []event // what happened on the direct connection, if known
	heard  bool    // the rules have it told what was told there
}

// play plays a life. like is what happened on the direct connection, if it is known.
func (p *taskPlayer) play(ctx context.Context, l *life, like []event) *living {
	v := &living{life: l, p: p, ctx: ctx, rng: rand.New(rand.NewPCG(l.seed, 1)), like: like, heard: p.hears}
	if !v.create() {
		return v
	}
	for _, step := range l.steps {
		v.step(step)
	}
	return v
}

func (v *living) see(step, format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	if v.id != "" {
		text = strings.ReplaceAll(text, v.id, "ID")
	}
	v.events = append(v.events, event{step, strings.ReplaceAll(text, v.label, v.shown)})
}

// ask sends a request and reads the result into what is given.
func (p *taskPlayer) ask(ctx context.Context, method, members string, progress bool, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	r, err := p.c.Begin(method, json.RawMessage("{"+members+"}"), progress)
	if err != nil {
		return err
	}
	got, err := p.c.Wait(ctx, r)
	if err != nil {
		return err
	}
	text, err := json.Marshal(got)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// broken is how errors are told.
func broken(err error) string {
	if e, ok := err.(*remote.Error); ok {
		return fmt.Sprintf("error %d: %s", e.Code, strings.TrimPrefix(e.Message, "MCP error "+fmt.Sprint(e.Code)+": "))
	}
	return "error 0: " + err.Error()
}

func (v *living) create() bool {
	task := ""
	if v.p.legacy && !v.plain {
		task = `, "task": {"ttl": 600000}`
	}
	var text json.RawMessage
	err := v.p.ask(v.ctx, "tools/call", fmt.Sprintf(`"name": %q, "arguments": %s%s`, v.tool, v.arguments, task), v.progress, &text)
	if err != nil {
		v.see("create", "%s", broken(err))
		return false
	}
	var made struct{ Task json.RawMessage }
	var told taskView
	var said outcomeView
	_ = json.Unmarshal(text, &said) // what can't be read is seen as nothing
	if _ = json.Unmarshal(text, &made); made.Task != nil {
		text = made.Task
	}
	_ = json.Unmarshal(text, &told)
	if v.id = told.TaskID; v.id == "" {
		v.see("create", "no task: %s", said.String())
		return false
	}
	told.Status = "begun" // how far it has come depends on when it is looked at
	v.see("create", "%s", &told)
	return true
}

func (v *living) step(step string) {
	switch id := fmt.Sprintf(`"taskId": %q`, v.id); step {
	case "look":
		v.see(step, "%s", v.look())
	case "unknown":
		v.see(step, "%s", v.request("tasks/get", `"taskId": "nobody-has-this"`))
	case "stray":
		if v.p.legacy {
			return
		}
		v.see(step, "%s", v.request("tasks/update", id+`, "inputResponses": {"nobody-has-this": {"action": "accept", "content": {"confirm": true}}}`))
	case "cancel":
		v.see(step, "%s", v.request("tasks/cancel", id))
	case "cancelled", "asking":
		v.see(step, "%s", v.until(map[string]string{"cancelled": "cancelled", "asking": "input_required"}[step]))
	case "list":
		v.see(step, "%s", v.list())
	case "settle":
		v.see(step, "%s", v.settle())
	case "told":
		v.hears()
	case "tally":
		v.see(step, "%s", v.tally())
	}
}

// tally says how often the tool was run. One that was cancelled may not have been begun.
func (v *living) tally() string {
	var got outcomeView
	err := v.p.ask(v.ctx, "tools/call", fmt.Sprintf(`"name": "tally", "arguments": {"label": %q}`, v.label), false, &got)
	switch text := got.String(); {
	case err != nil:
		return broken(err)
	case v.endless && text == "[{text 0}]":
		return "[{text 1}]"
	default:
		return text
	}
}

// request sends a request and says how the result begins.
func (v *living) request(method, members string) string {
	var task taskView
	if err := v.p.ask(v.ctx, method, members, false, &task); err != nil {
		return broken(err)
	}
	return task.String()
}

func (v *living) look() string {
	var task taskView
	if err := v.p.ask(v.ctx, "tasks/get", fmt.Sprintf(`"taskId": %q`, v.id), false, &task); err != nil {
		return broken(err)
	}
	v.status = task.Status
	return task.String()
}

// until looks until the task has a status.
func (v *living) until(status string) string {
	text := v.look()
	for end := time.Now().Add(2 * time.Minute); v.status != status && time.Now().Before(end) && !strings.HasPrefix(text, "error "); {
		time.Sleep(50 * time.Millisecond)
		text = v.look()
	}
	for end := time.Now().Add(2 * time.Minute); status == "input_required" && !v.p.legacy && strings.Count(text, "elicitation/create") < v.asks && time.Now().Before(end) && !strings.HasPrefix(text, "error "); {
		time.Sleep(50 * time.Millisecond) // not all are asked yet
		text = v.look()
	}
	return text
}

// list says whether the client's list of tasks has this one.
func (v *living) list() string {
	if !v.p.legacy {
		return ""
	}
	var page struct {
		Tasks      []taskView
		NextCursor string
	}
	for more := ""; ; more = fmt.Sprintf(`"cursor": %q`, page.NextCursor) {
		page.NextCursor, page.Tasks = "", nil
		if err := v.p.ask(v.ctx, "tasks/list", more, false, &page); err != nil {
			return broken(err)
		}
		if slices.ContainsFunc(page.Tasks, func(t taskView) bool { return t.TaskID == v.id }) {
			return "it is listed"
		}
		if page.NextCursor == "" {
			return "it is not listed"
		}
	}
}

// hears waits for what the client is told by itself as long as the direct connection was worth it.
func (v *living) hears() {
	if !v.p.legacy {
		return
	}
	told := func() string {
		for _, status := range []string{"completed", "failed"} {
			if v.p.wasTold(v.id, status) {
				return "told " + status
			}
		}
		return "nothing"
	}
	d := 3 * time.Second
	if v.like != nil {
		if d = 0; !slices.Contains(v.like, event{"told", "nothing"}) && v.heard {
			d = 2 * time.Minute
		}
	}
	for end := time.Now().Add(d); told() == "nothing" && time.Now().Before(end) && v.ctx.Err() == nil; {
		time.Sleep(20 * time.Millisecond)
	}
	v.see("told", "%s", told())
}

// settle answers what the task asks, and says what came of it.
func (v *living) settle() string {
	if v.p.legacy {
		return v.result()
	}
	var questions []string
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		var task taskView
		if err := v.p.ask(v.ctx, "tasks/get", fmt.Sprintf(`"taskId": %q`, v.id), false, &task); err != nil {
			return broken(err)
		}
		switch v.status = task.Status; {
		case task.Status != "working" && task.Status != "input_required":
			return strings.Join(questions, ", ") + " -> " + task.String()
		case len(task.InputRequests) > 0 && len(task.InputRequests)+len(questions) >= v.asks:
			for _, key := range slices.Sorted(maps.Keys(task.InputRequests)) {
				questions = append(questions, task.InputRequests[key].String())
			}
			slices.Sort(questions)
			if err := v.update(task.InputRequests); err != nil {
				return broken(err)
			}
		}
	}
	return "error 0: it is never over"
}

// update answers questions together or one by one, some of them twice.
func (v *living) update(asked map[string]questionView) error {
	keys := slices.Sorted(maps.Keys(asked))
	v.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	parts := [][]string{keys}
	if v.rng.IntN(2) == 0 {
		parts = slices.Collect(slices.Chunk(keys, 1))
	}
	for range v.rng.IntN(2) {
		parts = append(parts, parts[0])
	}
	for _, part := range parts {
		answers := make(map[string]json.RawMessage)
		for _, key := range part {
			answers[key] = asked[key].answer(v.reply)
		}
		text, err := json.Marshal(answers)
		if err == nil {
			err = v.p.ask(v.ctx, "tasks/update", fmt.Sprintf(`"taskId": %q, "inputResponses": %s`, v.id, text), false, new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// result waits for the result of a client of 2025-11-25, and answers what it is asked meanwhile, in
// any order once all is asked.
func (v *living) result() string {
	type reply struct {
		got outcomeView
		err error
	}
	done := make(chan reply, 1)
	go func() { // ends with the request
		var r reply
		r.err = v.p.ask(v.ctx, "tasks/result", fmt.Sprintf(`"taskId": %q`, v.id), false, &r.got)
		done <- r
	}()
	var open []steer.Question
	var questions []string
	for {
		select {
		case q := <-v.p.questions(v.id):
			var view questionView
			_ = json.Unmarshal(q.Params, &view.Params) // what can't be read is seen as that
			view.Method = q.Method
			questions = append(questions, view.String())
			if open = append(open, q); len(open) < v.asks {
				continue
			}
			slices.Sort(questions)
			v.rng.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
			for _, q := range open {
				var view questionView
				_ = json.Unmarshal(q.Params, &view.Params)
				if err := q.Answer(view.answer(v.reply)); err != nil {
					return broken(err)
				}
			}
			open = nil
		case r := <-done:
			text := r.got.String()
			if r.err != nil {
				text = broken(r.err)
			}
			return strings.TrimPrefix(strings.Join(questions, ", ")+" -> "+text, " -> ")
		}
	}
}
