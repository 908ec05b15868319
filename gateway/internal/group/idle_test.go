package group

import (
	"errors"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A group that nobody uses has no goroutine, and asks nobody for anything: neither before it is used
// for the first time, nor once its clients have left, also if a member is missing, or never starts.
func TestG20IdleGroup(t *testing.T) {
	files, down, starting := newFollowed("files", "file:///a"), newFake("down", "x"), newFake("starting", "x")
	down.err = errors.New("connection refused")
	members := []*fake{files, down, starting}
	withGroup(t, members, func(t *testing.T, r *groupRig) {
		starting.startsAfter(1000 * time.Hour)
		starting.err = mcp.ErrStarting
		synctest.Wait()
		before := inBubble(t)
		idle := func(when string) {
			t.Helper()
			time.Sleep(time.Minute) // what is under way has patience
			synctest.Wait()
			goroutines, asked := inBubble(t), asked(members)
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			if n := inBubble(t); goroutines != before || n != before {
				t.Errorf("%s there are %d goroutines, then %d, and before %d", when, goroutines, n, before)
			}
			if n := askedSince(members, asked); n != 0 {
				t.Errorf("%s members are asked %d times in a day", when, n)
			}
		}
		idle("at first")
		if n := askedSince(members, make([]int, len(members))); n != 0 {
			t.Errorf("before it is used members are asked %d times", n)
		}
		describe(t, r.rig)
		listing(t, r.rig, request(spec.MethodToolsList, ""))
		if _, err := backtest.Body(r.Serve(t.Context(), request(spec.MethodToolsCall, `{"name":"files__tool"}`), &backtest.Caller{})); err != nil {
			t.Fatal(err)
		}
		want := append(mcp.Filter{Tools: true}.Topics("all/1"), uriTopics("file:///a")...)
		r.Want(1, want...)
		_, release, err := r.group.Watch(t.Context(), mcp.Profile{Scope: "all/1"}, want)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := inBubble(t); n <= before {
			t.Errorf("with a follower there are %d goroutines, and %d without", n, before)
		}
		r.Want(-1, want...)
		release()
		idle("once all have left")
	})
}

// inBubble returns the number of goroutines of the test's bubble: others of the process come and go.
func inBubble(t *testing.T) int {
	t.Helper()
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	bubble := regexp.MustCompile(`synctest bubble \d+`).Find(text) // that of this goroutine, which comes first
	if bubble == nil {
		t.Fatalf("no bubble is named in %.200s", text)
	}
	return len(regexp.MustCompile(`(?m)^goroutine \d+ .*`+string(bubble)+`\b.*:$`).FindAll(text, -1))
}

// asked returns how often each member was asked.
func asked(members []*fake) (n []int) {
	for _, f := range members {
		n = append(n, len(f.requests()))
	}
	return n
}

func askedSince(members []*fake, before []int) (n int) {
	for i, now := range asked(members) {
		n += now - before[i]
	}
	return n
}
