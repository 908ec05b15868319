package process_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

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
