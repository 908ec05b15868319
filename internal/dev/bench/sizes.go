//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// sizes measures how large the programs are that users get, and how long the go command takes for one
// of them with nothing cached but what was downloaded. It wants the tree as its working directory.
func (b *bench) sizes() (err error) {
	dir, err := os.MkdirTemp("", "mcpbridge-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, p := range []struct {
		what, pkg  string
		most, goal float64
	}{
		{"mcpbridge, stripped", "./cmd/mcpbridge", 31.8, 30},
		{"a program with a gateway in it, stripped", "./examples/embedded", 19.5, 14},
	} {
		size, err := builtSize(b.ctx, dir, p.pkg)
		if err != nil {
			return err
		}
		b.table.add(row{what: "size of " + p.what, got: size, unit: " MB", most: p.most, goal: p.goal, detail: "10^6 bytes"})
	}
	took, err := coldBuild(b.ctx, dir)
	if err != nil {
		return err
	}
	b.table.add(row{what: "time to build mcpbridge, nothing cached", got: took.Seconds(), unit: " s", most: 75, goal: 45, detail: "on as many cores as there are"})
	return nil
}

// builtSize returns the size of a program as a release has it, in 10^6 bytes.
func builtSize(ctx context.Context, dir, pkg string) (float64, error) {
	to := filepath.Join(dir, "built")
	if err := goBuild(ctx, nil, "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", to, pkg); err != nil {
		return 0, err
	}
	built, err := os.Stat(to)
	if err != nil {
		return 0, err
	}
	return float64(built.Size()) / 1e6, nil
}

// coldBuild builds the command with an empty cache.
func coldBuild(ctx context.Context, dir string) (time.Duration, error) {
	begin := time.Now()
	err := goBuild(ctx, []string{"GOCACHE=" + filepath.Join(dir, "cache")}, "-tags", "grpcnotrace", "-o", filepath.Join(dir, "cold"), "./cmd/mcpbridge")
	return time.Since(begin), err
}

func goBuild(ctx context.Context, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %w\n%s", args, err, out)
	}
	return nil
}
