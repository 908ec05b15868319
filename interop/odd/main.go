package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// flags are what the command line says.
type flags struct {
	starts, unknown, lock, port, lazy string
	modern                            bool
	release                           time.Duration
}

func main() {
	var f flags
	flag.StringVar(&f.starts, "starts", "", "append a line to `FILE`")
	flag.StringVar(&f.unknown, "unknown", "", "`WAY` to take an unknown first request: exit, wedge, silent, noise or pin")
	flag.BoolVar(&f.modern, "modern", false, "the server is modern: what it doesn't know is initialize")
	flag.StringVar(&f.lock, "lock", "", "hold a lock on `FILE`")
	flag.StringVar(&f.lazy, "lazy", "", "hold a lock on `FILE` from the first call of a tool on")
	flag.StringVar(&f.port, "port", "", "listen on `ADDR`")
	flag.DurationVar(&f.release, "release", 0, "hold what is held for so long after the end")
	flag.Parse()
	if err := run(f, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "odd:", err)
		os.Exit(1)
	}
}

func run(f flags, argv []string) error {
	if len(argv) == 0 {
		return errors.New("want a command")
	}
	if err := note(f.starts); err != nil {
		return err
	}
	held, err := hold(f.lock, f.port)
	if err != nil {
		return err
	}
	defer held.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	profile, err := newProfile(f.lazy)
	if err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	defer profile.close()
	err = (&filter{unknown: f.unknown, modern: f.modern, profile: profile, server: in}).run(os.Stdin)
	_ = in.Close() // the server may have ended
	err = errors.Join(err, cmd.Wait())
	time.Sleep(f.release)
	return err
}

// note appends a line to a file, in one write.
func note(file string) error {
	if file == "" {
		return nil
	}
	w, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d\n", os.Getpid())
	return errors.Join(err, w.Close())
}

// hold takes what only one process may have, until it is closed.
func hold(lock, port string) (io.Closer, error) {
	switch {
	case lock != "":
		return lockFile(lock)
	case port != "":
		return net.Listen("tcp", port)
	}
	return io.NopCloser(nil), nil
}

func lockFile(name string) (io.Closer, error) {
	w, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(w.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another process has the lock on %s: %w", name, errors.Join(err, w.Close()))
	}
	return w, nil
}
