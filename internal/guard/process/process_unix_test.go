//go:build unix

package process

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// lastWords has the test binary be a process that says so when SIGTERM ends it.
const lastWords = "last-words"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == lastWords {
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		fmt.Println("ready")
		<-told
		fmt.Println("bye")
		return
	}
	os.Exit(bridgetest.Main(m))
}

// start starts a process in a group of its own, and returns its id and what it ends with.
func start(t *testing.T, cmd *exec.Cmd) (leader int, ended <-chan error) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- cmd.Wait() }() // ends with the process
	leader = cmd.Process.Pid
	t.Cleanup(func() { _ = syscall.Kill(-leader, syscall.SIGKILL) }) // as it should have ended
	return leader, end
}

// startReady is start for a script, whose $0 is the test binary, once it has said that it is ready.
func startReady(t *testing.T, script string) (leader int, says *bufio.Reader, ended <-chan error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	cmd := exec.Command("sh", "-c", script, os.Args[0])
	cmd.Stdout = w
	leader, ended = start(t, cmd)
	_ = w.Close()
	if err := r.SetReadDeadline(time.Now().Add(bridgetest.Patience)); err != nil {
		t.Fatal(err)
	}
	says = bufio.NewReader(r)
	if line, err := says.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the script says %q, %v", line, err)
	}
	return leader, says, ended
}

// endOf returns what a process ends with.
func endOf(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(bridgetest.Patience):
		t.Fatal("the process has not ended")
		return nil
	}
}

// Lines may arrive in pieces, and unknown lines are ignored.
func TestReceive(t *testing.T) {
	p := &tracker{groups: make(map[int]string), starting: make(map[uint64]string)}
	buf := make([]byte, 0, 128)
	for _, part := range []string{"starting 7\ngro", "up 41", "2345678\nset", "tled 7\n", "group 1\ngroup x\n\nhello\n", "group 412345679\nended 412345678\nstarting 8 A=b\n"} {
		buf = p.receive(append(buf, part...))
	}
	if got := slices.Collect(maps.Keys(p.groups)); !slices.Equal(got, []int{412345679}) {
		t.Errorf("groups = %v, want the last", got)
	}
	if got := slices.Collect(maps.Keys(p.starting)); !slices.Equal(got, []uint64{8}) {
		t.Errorf("starting = %v, want 8", got)
	}
}

// A line that is too long for a message is dropped, and does not take the place of what follows.
func TestLineWithoutEnd(t *testing.T) {
	p := &tracker{groups: make(map[int]string), starting: make(map[uint64]string)}
	buf := make([]byte, 0, 4096)
	buf = p.receive(append(buf, strings.Repeat("x", cap(buf))...))
	if len(buf) > maxLine {
		t.Errorf("%d bytes of it are kept, want %d at most", len(buf), maxLine)
	}
	longest := "starting 7 " + strings.Repeat("m", maxLine-len("starting 7 "))
	buf = p.receive(append(buf, "\n"+longest...))
	if got := p.receive(append(buf, "\ngroup 412345678\n"...)); len(got) > 0 {
		t.Errorf("%q is left, want nothing", got)
	}
	if _, known := p.groups[412345678]; !known || "starting 7 "+p.starting[7] != longest {
		t.Errorf("groups = %v, starting = %v, want what came after the line", p.groups, p.starting)
	}
}

// A group has time to end by itself, and no longer than it takes, also one whose start time is not
// known, as where there is no /proc.
func TestEndIsGentle(t *testing.T) {
	leader, says, _ := startReady(t, `exec "$0" `+lastWords)
	begin := time.Now()
	(&tracker{groups: map[int]string{leader: ""}}).end(time.Minute)
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("end took %v, want as long as the group runs", took)
	}
	if line, err := says.ReadString('\n'); line != "bye\n" {
		t.Errorf("it said %q, %v, want its last words", line, err)
	}
}

// What a leader that has ended has left gets its signals all the same.
func TestLeaderHasEnded(t *testing.T) {
	leader, says, ended := startReady(t, `"$0" `+lastWords+" & exit")
	was := begun(leader)
	_ = endOf(t, ended)
	(&tracker{groups: map[int]string{leader: was}}).signal(syscall.SIGTERM)
	if line, err := says.ReadString('\n'); line != "bye\n" {
		t.Errorf("it said %q, %v, want its last words", line, err)
	}
}

// A group that ignores SIGTERM is killed after the time that it had.
func TestEndIsCertain(t *testing.T) {
	leader, _, ended := startReady(t, `trap "" TERM; echo ready; while :; do sleep 60; done`)
	begin := time.Now()
	(&tracker{groups: map[int]string{leader: begun(leader)}}).end(100 * time.Millisecond)
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("end took %v, want the time that the group has", took)
	}
	var killed *exec.ExitError
	if err := endOf(t, ended); !errors.As(err, &killed) || killed.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v, want SIGKILL", err)
	}
}

// A process id that was reused for another process gets no signal.
func TestReusedID(t *testing.T) {
	pid, ended := start(t, exec.Command("sleep", "60"))
	if begun(pid) == "" {
		t.Skip("the start time of a process is unknown here")
	}
	(&tracker{groups: map[int]string{pid: "long ago"}}).end(time.Second)
	select {
	case err := <-ended:
		t.Fatalf("the process was ended: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	(&tracker{groups: map[int]string{pid: begun(pid)}}).end(time.Second)
	_ = endOf(t, ended)
}
