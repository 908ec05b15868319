//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// restAfter is when a program that has just worked is at rest: it has given its memory back.
const restAfter = 35 * time.Second

// wraps measures what wrap and its watchdog take at rest, after the first requests of a client. The
// budgets are of what they have written: how many pages of the program count as well differs from one
// system to another. It wants the tree as its working directory.
func (b *bench) wraps() (err error) {
	dir, err := os.MkdirTemp("", "mcpbridge-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "mcpbridge")
	if err := goBuild(b.ctx, nil, "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", program, "./cmd/mcpbridge"); err != nil {
		return err
	}
	cmd := exec.CommandContext(b.ctx, program, "wrap", "--", self, "-role", "stdio")
	cmd.Env = append(os.Environ(), "MCPBRIDGE_REMEMBER=false")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(), cmd.Wait()) }()
	answers := bufio.NewReader(out)
	for _, request := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"` + toolName(smallCall) + `"}}`,
	} {
		if _, err := fmt.Fprintln(in, request); err != nil {
			return err
		}
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, `"result"`) {
			return fmt.Errorf("wrap answered %q, %v", line, err)
		}
	}
	time.Sleep(restAfter)
	watchdog, err := watchdogOf(cmd.Process.Pid, program)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		what, pid  string
		most, goal float64
	}{{"wrap", strconv.Itoa(cmd.Process.Pid), 3.65, 3}, {"its watchdog", watchdog, 0.74, 0.7}} {
		own, err := procSize(p.pid, "smaps_rollup", "\nPss_Anon:")
		if err != nil {
			return err
		}
		all, err := procSize(p.pid, "smaps_rollup", "\nPss:")
		if err != nil {
			return err
		}
		b.table.add(row{what: "memory of " + p.what + " at rest, without the program's pages", got: own, unit: " MiB", most: p.most, goal: p.goal,
			detail: fmt.Sprintf("%.1f MiB with its share of them", all)})
	}
	return nil
}

// watchdogOf returns the id of the child of a process that is of the same program.
func watchdogOf(pid int, program string) (string, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		for _, child := range strings.Fields(string(text)) {
			if of, err := os.Readlink("/proc/" + child + "/exe"); err == nil && of == program {
				return child, nil
			}
		}
	}
	return "", errors.New("wrap has no watchdog")
}

// procSize returns a size that the system tells of a process in one of its files, in MiB.
func procSize(pid, file, name string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/%s", pid, file))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), name)
	var kib float64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		return 0, fmt.Errorf("reading %s of process %s: %w", file, pid, err)
	}
	return kib / 1024, nil
}
