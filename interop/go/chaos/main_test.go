package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// What TestMain built of the tree as it is, or was told to use: MCPBRIDGE names
// a binary, such as one with the race detector.
var bridgeBinary, serverBinary string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Println("FAIL:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "mcpbridge-chaos-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	serverBinary = filepath.Join(dir, "legacy-go")
	err = errors.Join(raiseFileLimit(), build("../../legacy-go", serverBinary, "."))
	if bridgeBinary = os.Getenv("MCPBRIDGE"); bridgeBinary == "" {
		bridgeBinary = filepath.Join(dir, "mcpbridge")
		err = errors.Join(err, build("../../..", bridgeBinary, "./cmd/mcpbridge"))
	}
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func build(module, output, pkg string) error {
	out, err := exec.Command("go", "-C", module, "build", "-o", output, pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", output, err, out)
	}
	return nil
}

// raiseFileLimit allows as many open files as may be, to children too.
func raiseFileLimit() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}

// envInt returns the integer in an environment variable, or what else.
func envInt(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// seed returns what random choices come from, and says so.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := envInt(t, "SEED", time.Now().UnixNano()%1_000_000)
	t.Logf("SEED=%d", n)
	return uint64(n)
}

// until polls: what is waited for happens in another process. It fails the test
// with the last complaint if there still is one after d.
func until(t *testing.T, d time.Duration, what string, complaint func() string) {
	t.Helper()
	var last string
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if last = complaint(); last == "" {
			return
		}
	}
	t.Fatalf("%s: not within %v: %s", what, d, last)
}
