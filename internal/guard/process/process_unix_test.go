//go:build unix

package process

import (
	"maps"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

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

// A process id that was reused for another process gets no signal.
func TestReusedID(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the process
	pid := cmd.Process.Pid
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // as it should have ended
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
	<-ended
}
