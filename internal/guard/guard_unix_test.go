//go:build unix

package guard

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// stubborn is a command that only SIGKILL ends, with a second process.
const stubborn = `trap "" TERM HUP INT; sleep 60 & echo ready >&3; while :; do sleep 60; done`

// TestMain runs the test binary as a process that has commands and is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && doomed[os.Args[1]] != nil {
		doomed[os.Args[1]]()
		select {}
	}
	os.Exit(bridgetest.Main(m))
}

// doomed are the processes that are killed. Each prints the groups that it has started.
var doomed = map[string]func(){
	"while commands run": func() {
		g := New(slog.New(slog.DiscardHandler))
		fmt.Println(startSleep(g), startShell(g, stubborn))
	},
	// The watchdog has not been told of the latest command.
	"in a start": func() {
		g := New(slog.New(slog.DiscardHandler))
		first := startSleep(g)
		r, w, _ := os.Pipe()
		_ = g.Start(r, "", func() (int, error) {
			cmd := shell(stubborn, r)
			err := cmd.Start()
			fmt.Println(first, cmd.Process.Pid)
			time.Sleep(100 * time.Millisecond) // or it dies of SIGTERM before it ignores that
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			return 0, errors.Join(err, w.Close())
		})
	},
	// Nor does it find the leader, which has ended and has left another.
	"in a start, and the leader ends": func() {
		g := New(slog.New(slog.DiscardHandler))
		first := startSleep(g)
		r, w, _ := os.Pipe()
		_ = g.Start(r, markOf, func() (int, error) {
			cmd := shell(`trap "" TERM HUP INT; sleep 60 </dev/null & exit`, r)
			cmd.Env = append(os.Environ(), markOf)
			err := cmd.Run()
			fmt.Println(first, cmd.Process.Pid)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			return 0, errors.Join(err, w.Close())
		})
	},
}

// markOf is the mark of a command whose leader ends before the watchdog looks for it.
const markOf = "STARTED_BY_MCPBRIDGE=in a start"

func shell(script string, stdin *os.File) *exec.Cmd {
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdin = stdin
	return cmd
}

// startShell starts a group under g, and returns its id when the script is ready.
func startShell(g *Guard, script string) (leader int) {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	ready, says, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd := shell(script, r)
	cmd.ExtraFiles = []*os.File{says}
	err = g.Start(r, "", func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		panic(err)
	}
	_ = says.Close()
	_, _ = ready.Read(make([]byte, 16))
	_ = ready.Close()
	go func() { // ends with the process
		_ = cmd.Wait()
		_, _ = r.Close(), w.Close()
	}()
	return cmd.Process.Pid
}

func startSleep(g *Guard) int { return startShell(g, "echo ready >&3; sleep 60") }

// alive reports whether a group has a process that has not ended, by /proc or else by the
// program ps.
func alive(leader int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	if len(stats) == 0 {
		return aliveByPS(leader)
	}
	for _, name := range stats {
		text, _ := os.ReadFile(name)                    // its process may have ended by now
		_, fields, _ := strings.Cut(string(text), ") ") // after its name
		var state string
		var parent, group int
		if _, err := fmt.Sscan(fields, &state, &parent, &group); err == nil && group == leader && state != "Z" {
			return true
		}
	}
	return false
}

func aliveByPS(leader int) bool {
	out, err := exec.Command("ps", "-axo", "pgid=,stat=").Output()
	if err != nil {
		panic(err) // otherwise every group would seem to have ended
	}
	for line := range strings.Lines(string(out)) {
		var group int
		var state string
		if _, err := fmt.Sscan(line, &group, &state); err == nil && group == leader && state[0] != 'Z' {
			return true
		}
	}
	return false
}

func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > within {
			t.Fatalf("after %v: still not %s", within, what)
		}
	}
}

// awaitRunning waits until a watchdog ignores signals, after which it leaves its folder. A race build
// takes its time for that on a busy machine, where Close would kill it before it has begun.
func awaitRunning(t *testing.T, w *watchdog) {
	t.Helper()
	if w == nil {
		t.Fatal("there is no guard")
	}
	eventually(t, bridgetest.Patience, "running", func() bool {
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", w.cmd.Process.Pid))
		return dir == "/" || err != nil && time.Since(w.begun) > soon // where there is no /proc
	})
}

func killLater(t *testing.T, leader int) {
	t.Cleanup(func() { _ = syscall.Kill(-leader, syscall.SIGKILL) }) // as it should have ended
}

func testLog(t *testing.T) (*slog.Logger, *bytes.Buffer) {
	out := new(bytes.Buffer)
	return slog.New(slog.NewTextHandler(out, nil)), out
}

// A killed process leaves no group behind, whatever signals the members ignore.
func TestU04KilledProcessLeavesNothing(t *testing.T) {
	for how := range doomed {
		t.Run(how, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], how)
			var out bytes.Buffer
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdout = w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			var first, second int
			buf := make([]byte, 64)
			n, _ := r.Read(buf)
			out.Write(buf[:n])
			if _, err := fmt.Sscan(out.String(), &first, &second); err != nil {
				t.Fatalf("it said %q: %v", &out, err)
			}
			killLater(t, first)
			killLater(t, second)
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
			begin := time.Now()
			// The watchdog does not keep the output open.
			if n, err := r.Read(buf); how == "while commands run" && (n > 0 || time.Since(begin) > time.Second) {
				t.Errorf("its output ended after %v with %v", time.Since(begin), err)
			}
			eventually(t, bridgetest.Patience, "gone", func() bool { return !alive(first) && !alive(second) })
			t.Logf("took %v", time.Since(begin))
		})
	}
}

// Close ends the remaining groups, waits for the watchdog, and prevents further starts.
// It does not signal a group that has ended: its id may have been reused.
func TestU04CloseLeavesNothing(t *testing.T) {
	log, out := testLog(t)
	g := New(log)
	left, ended := startShell(g, stubborn), startSleep(g)
	killLater(t, left)
	killLater(t, ended)
	g.Ended(ended)
	w := g.watchdog
	awaitRunning(t, w)
	begin := time.Now()
	g.Close()
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
	if w.cmd.ProcessState == nil {
		t.Error("the guard was not waited for")
	}
	eventually(t, bridgetest.Patience, "gone", func() bool { return !alive(left) })
	if !alive(ended) {
		t.Error("a group that was said to have ended was ended")
	}
	err := g.Start(os.Stdin, "", func() (int, error) { t.Error("it was started after Close"); return 0, nil })
	if !errors.Is(err, ErrClosed) {
		t.Errorf("Start after Close = %v, want ErrClosed", err)
	}
	if out.Len() > 0 {
		t.Errorf("the log says %s", out)
	}
}

// A group that has ended by itself does not delay Close.
func TestU04CloseIsQuick(t *testing.T) {
	log, _ := testLog(t)
	g := New(log)
	leader := startShell(g, "echo ready >&3")
	eventually(t, bridgetest.Patience, "gone", func() bool { return syscall.Kill(-leader, 0) != nil })
	g.Ended(leader)
	awaitRunning(t, g.watchdog)
	begin := time.Now()
	g.Close()
	if took := time.Since(begin); took > 500*time.Millisecond {
		t.Errorf("Close took %v with nothing left", took)
	}
}

// If a command can't be started, Start returns its error, and the watchdog forgets it.
func TestU04FailedStart(t *testing.T) {
	log, _ := testLog(t)
	g := New(log)
	defer g.Close()
	want := errors.New("no such file")
	if err := g.Start(os.Stdin, "", func() (int, error) { return 0, want }); err != want {
		t.Errorf("Start = %v, want what start returned", err)
	}
	if w := g.watchdog; len(w.groups)+len(w.starts) > 0 {
		t.Errorf("the guard keeps %v and %v", w.groups, w.starts)
	}
}

// The usual signals do not end the watchdog. If it is killed, another one replaces it and
// gets its state.
func TestU04GuardStays(t *testing.T) {
	log, _ := testLog(t)
	g := New(log)
	leader := startSleep(g)
	killLater(t, leader)
	first := g.watchdog
	awaitRunning(t, first)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT} {
		if err := first.cmd.Process.Signal(sig); err != nil {
			t.Errorf("%v: %v", sig, err)
		}
	}
	time.Sleep(soon) // a watchdog that ends soon is not replaced
	if err := first.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Fatalf("the guard ended: %v", err)
	}
	_ = first.cmd.Process.Kill()
	<-first.done
	awaitRunning(t, g.watchdog)
	g.Close()
	eventually(t, bridgetest.Patience, "gone", func() bool { return !alive(leader) })
}

// If the watchdog can't be started, or ends soon, that is logged once, and commands still
// run.
func TestU04CommandsRunWithoutAGuard(t *testing.T) {
	for name, launch := range map[string]func(lost func(*watchdog, error)) (*watchdog, error){
		"not started": func(func(*watchdog, error)) (*watchdog, error) { return nil, errors.New("no memory") },
		"ends at once": func(lost func(*watchdog, error)) (*watchdog, error) {
			w, err := newWatchdog(lost)
			if err == nil {
				_ = w.cmd.Process.Kill()
			}
			return w, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, out := testLog(t)
			g := New(log)
			g.launch = launch
			for range 2 {
				killLater(t, startSleep(g))
				eventually(t, bridgetest.Patience, "given up", func() bool { g.turn <- struct{}{}; defer func() { <-g.turn }(); return g.failed })
			}
			g.Close()
			if n := strings.Count(out.String(), "commands outlive mcpbridge"); n != 1 {
				t.Errorf("%d warnings, want 1:\n%s", n, out)
			}
		})
	}
}
