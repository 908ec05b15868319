package process_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

// Two programs of the tests are never given one address, though nobody listens on
// it yet: neither by one process, nor by two that run at once. Of 600 in 12,000
// ports some 15 would be.
func TestFreeAddrIsGivenOnce(t *testing.T) {
	const each = 300
	if os.Getenv("PROCESS_TEST_ADDRESSES") != "" {
		for range each {
			fmt.Println(address(t))
		}
		_, _ = os.Stdin.Read(make([]byte, 1)) // keeps them until its end
		return
	}
	other := exec.Command(os.Args[0], "-test.run=^TestFreeAddrIsGivenOnce$")
	other.Env = append(os.Environ(), "PROCESS_TEST_ADDRESSES=1")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	theirs := bufio.NewScanner(out)
	for range each {
		if !theirs.Scan() {
			t.Fatal("the other process ended: ", theirs.Err())
		}
		seen[theirs.Text()] = true
	}
	for range each {
		seen[address(t)] = true
	}
	if len(seen) != 2*each {
		t.Errorf("%d addresses were given, %d of them different", 2*each, len(seen))
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}

func address(t *testing.T) string {
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// A program does not outlive a test that panics, as one does which exceeds its -timeout.
func TestProgramEndsWithThePanic(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel ends it on Linux alone")
	}
	if os.Getenv("PROCESS_TEST_PANICS") != "" {
		p, err := process.Start("sleep", nil, "sleep", "600")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("pid", p.Pid())
		go panic("as the alarm of testing does, in a goroutine of its own")
		select {}
	}
	other := exec.Command(os.Args[0], "-test.run=^TestProgramEndsWithThePanic$")
	other.Env = append(os.Environ(), "PROCESS_TEST_PANICS=1")
	out, err := other.Output()
	var pid int
	if _, scan := fmt.Sscanf(string(out), "pid %d", &pid); scan != nil || err == nil {
		t.Fatalf("the other process: %v: %s", err, out)
	}
	for end := time.Now().Add(time.Minute); runs(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the program has outlived the test")
		}
	}
}

// runs reports whether a process has not ended. Whose parent it was may not have waited for it.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
