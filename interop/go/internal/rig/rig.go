// Package rig answers one question: what does a folder of proofs need before it
// can run mcpbridge and a server of interop/ as processes, and watch them?
//
// It builds the programs of the tree as it is, starts mcpbridge, reads its
// counters, and waits for what happens in another process. It knows nothing of
// what is to be proven.
package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

// Binaries are the programs that Main built, or was told to use.
type Binaries struct {
	Bridge string // of the tree as it is, unless MCPBRIDGE names one, such as one with the race detector
	Server string
}

// Main builds mcpbridge and the server of a folder beside interop/go, if one is named, into b, runs
// the tests, and returns the status to exit with. The tests' working directory is
// a folder of interop/go.
func Main(m *testing.M, server string, b *Binaries) int {
	code, err := run(m, server, b)
	if err != nil {
		fmt.Println("FAIL:", err)
		return 1
	}
	return code
}

func run(m *testing.M, server string, b *Binaries) (code int, err error) {
	dir, err := os.MkdirTemp("", "mcpbridge-"+server+"-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = raiseFileLimit()
	if server != "" {
		b.Server = filepath.Join(dir, server)
		err = errors.Join(err, build("../../"+server, b.Server, "."))
	}
	if b.Bridge = os.Getenv("MCPBRIDGE"); b.Bridge == "" {
		b.Bridge = filepath.Join(dir, "mcpbridge")
		err = errors.Join(err, build("../../..", b.Bridge, "./cmd/mcpbridge"))
	}
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// Build builds mcpbridge and the server of a folder beside interop/go for one test, where
// no Main does. The test's working directory is a folder of interop/go.
func Build(t testing.TB, server string) Binaries {
	t.Helper()
	dir := t.TempDir()
	b := Binaries{Bridge: os.Getenv("MCPBRIDGE"), Server: filepath.Join(dir, server)}
	err := build("../../"+server, b.Server, ".")
	if b.Bridge == "" {
		b.Bridge = filepath.Join(dir, "mcpbridge")
		err = errors.Join(err, build("../../..", b.Bridge, "./cmd/mcpbridge"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func build(module, output, pkg string) error {
	out, err := exec.Command("go", "-C", module, "build", "-o", output, pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", output, err, out)
	}
	return nil
}

// raiseFileLimit allows as many open files as may be: a stream is one here and
// one in mcpbridge. Go raises the limit at the start by itself, and gives
// children back what it found unless somebody sets it.
func raiseFileLimit() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}

// Parallel has so many tests run beside each other, unless -parallel says how many: where
// they wait most of the time, more than there are cores.
func Parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // the flag takes a number
	}
}

// Int returns the integer in an environment variable, or what else.
func Int(t *testing.T, name string, otherwise int64) int64 {
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

// Seed returns what random choices come from, and says so.
func Seed(t *testing.T) uint64 {
	t.Helper()
	n := Int(t, "SEED", time.Now().UnixNano()%1_000_000)
	t.Logf("SEED=%d", n)
	return uint64(n)
}

// Until polls: what is waited for happens in another process. It fails the test
// with the last complaint if there still is one after d.
func Until(t testing.TB, d time.Duration, what string, complaint func() string) {
	t.Helper()
	var last string
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if last = complaint(); last == "" {
			return
		}
	}
	t.Fatalf("%s: not within %v: %s", what, d, last)
}

// Judge reports a ratio and its budget as a benchmark's result. It fails nothing:
// internal/dev/bench/budget reads the results and says which are over.
func Judge(b *testing.B, ratio, most float64) {
	b.ReportMetric(0, "ns/op") // of the whole: it says nothing
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(most, "at-most")
}

// FreeAddr returns a loopback address that nobody listens on at the moment.
func FreeAddr(t testing.TB) string {
	t.Helper()
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// StartBridge starts mcpbridge with a configuration, and returns when /readyz at
// the address admin says that it is. env is added to its environment. Whoever gets it ends it.
func (b *Binaries) StartBridge(t testing.TB, config, admin string, env ...string) *process.Process {
	t.Helper()
	return b.StartBridgeFile(t, filepath.Join(t.TempDir(), "mcpbridge.yaml"), config, admin, env...)
}

// StartBridgeFile is StartBridge with the name of the file that the configuration is written
// to.
func (b *Binaries) StartBridgeFile(t testing.TB, file, config, admin string, env ...string) *process.Process {
	t.Helper()
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := process.Start("mcpbridge", env, b.Bridge, "serve", "-c", file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	if err := p.Ready(ctx, "http://"+admin+"/readyz", http.StatusOK); err != nil {
		p.Kill()
		t.Fatal(err)
	}
	return p
}

// Gauges returns the samples of /metrics at the address admin, by name with
// labels.
func Gauges(t testing.TB, c *http.Client, admin string) map[string]float64 {
	t.Helper()
	res, err := c.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		var v float64
		if _, err := fmt.Sscan(value, &v); ok && name != "#" && err == nil {
			out[name] = v
		}
	}
	return out
}

// Each does something for 0 to n-1, so many at once, and returns the first error.
func Each(n, atOnce int, do func(i int) error) error {
	var wg sync.WaitGroup
	todo, errs := make(chan int), make(chan error, n)
	for range min(n, atOnce) {
		wg.Go(func() { // ends when todo is closed
			for i := range todo {
				if err := do(i); err != nil {
					errs <- fmt.Errorf("%d of %d: %w", i, n, err)
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	wg.Wait()
	select {
	case err := <-errs:
		return fmt.Errorf("%w (and %d more)", err, len(errs))
	default:
		return nil
	}
}
