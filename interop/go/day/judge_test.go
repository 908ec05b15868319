package day

import (
	"encoding/json"
	"time"
)

// told is the member of a result's _meta that says that the server's state was lost.
const told = "dev.mcpbridge/state-lost"

// judge holds an answer against the model, and returns it. An error is right only after a
// process was lost, and tells so: then the client asks again, in a new session if it must.
func (u *user) judge(s step, within time.Duration) any {
	got, err := u.ask(s, within)
	if err != nil && (u.lost || u.mayTell) {
		u.note("told: %v", err)
		u.restart()
		got, err = u.again(s, within)
	}
	if err != nil {
		u.fail("%v: %v", s, err)
	}
	u.tell(s, got)
	if want := u.m.apply(s); text(got) != want && s.tool != "pid" {
		u.fail("%v: the answer is %s, want %q", s, brief(got), want)
	}
	if s.tool == "advance" {
		u.hear()
	}
	return got
}

// again asks until there is an answer, in a new session if the old one has none. What dies
// time and again is started after a pause of up to 5 s.
func (u *user) again(s step, within time.Duration) (got any, err error) {
	for n := range 15 {
		time.Sleep(500 * time.Millisecond)
		if got, err = u.ask(s, within); err == nil {
			return got, nil
		}
		u.note("and again: %v", err)
		if n > 0 {
			err = u.renew()
			u.note("in a new session: %v", err)
		}
	}
	return nil, err
}

// tell holds that a result tells of a loss if there was one, and only then.
func (u *user) tell(s step, got any) {
	switch says := tells(got); {
	case says && !u.mayTell:
		u.fail("%v: the answer tells of a loss that there was not: %s", s, brief(got))
	case u.lost && !says && !u.m.fresh() && s.do != "list":
		u.fail("%v: the state is lost, and the answer does not say so: %s", s, brief(got))
	case says:
		u.note("told: %s", brief(got))
		u.settles(0) // the process has just started, and the subscription follows
		if u.lost {
			u.restart()
		}
		u.mayTell = false
	case s.do != "list":
		if u.lost {
			u.restart()
		}
		u.mayTell = false // only the next one may
	}
}

// hear takes the news of the change that the client has made.
func (u *user) hear() {
	if u.deaf || time.Now().Before(u.settled) {
		u.c.Changed.Clear()
		return
	}
	if _, ok := u.c.Changed.Take(time.Minute); !ok {
		u.fail("the resource has changed, and the client does not hear of it")
	}
}

// restart keeps that the loss was told, and that a new process serves.
func (u *user) restart() {
	u.m.lost()
	u.lost, u.mayTell, u.deaf = false, true, true
}

// renew opens another session after one that is broken.
func (u *user) renew() error {
	u.deaf = false // of this session
	_, _ = u.request("close", nil)
	return u.connect()
}

// tells reports whether a result says that the state was lost.
func tells(result any) bool {
	r, _ := result.(map[string]any)
	meta, _ := r["_meta"].(map[string]any)
	return meta[told] != nil
}

// text returns the text of a tool's result, or of a resource.
func text(result any) string {
	r, _ := result.(map[string]any)
	for _, member := range []string{"content", "contents"} {
		if list, _ := r[member].([]any); len(list) == 1 {
			first, _ := list[0].(map[string]any)
			s, _ := first["text"].(string)
			return s
		}
	}
	return ""
}

func brief(result any) string {
	b, err := json.Marshal(result)
	if err != nil {
		return err.Error()
	}
	return string(b[:min(len(b), 500)])
}
