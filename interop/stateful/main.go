package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	kind := flag.String("kind", "", "browser, database or tick")
	dir := flag.String("dir", "", "`FOLDER` of all files")
	clients := flag.Int("clients", 1, "how many processes may be there at a time")
	save := flag.Duration("save", 0, "how long a database takes to save")
	flag.Parse()
	if err := run(*kind, *dir, *clients, *save); err != nil {
		fmt.Fprintln(os.Stderr, "stateful:", err)
		os.Exit(1)
	}
}

// run serves until standard input ends. A signal ends the process at once: what is not
// saved by then is lost.
func run(kind, dir string, clients int, save time.Duration) error {
	if err := enter(dir, clients); err != nil {
		return err
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "stateful-" + kind, Version: "1"}, options(kind))
	restrict(s)
	mcp.AddTool(s, &mcp.Tool{Name: "pid"}, tool(func(args) (string, error) { return fmt.Sprint(os.Getpid()), nil }))
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, tool(func(args) (string, error) { os.Exit(1); return "", nil }))
	leave := func() error { return nil }
	switch kind {
	case "browser":
		leave = addBrowser(s, dir)
	case "database":
		var err error
		if leave, err = addDatabase(s, dir, save); err != nil {
			return err
		}
	case "tick":
		addTick(s)
	default:
		return fmt.Errorf("no kind %q", kind)
	}
	_ = s.Run(context.Background(), &mcp.StdioTransport{}) // whatever it says of the input's end
	return leave()
}

// enter takes one of the places of processes that run at a time. The kernel frees it when
// the process has ended, however that is.
func enter(dir string, clients int) error {
	for i := range clients {
		taken, err := lock(filepath.Join(dir, fmt.Sprint("place-", i)))
		if taken || err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "overlap"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, time.Now().Format(time.RFC3339Nano), os.Getpid())
	return err
}

// lock locks a file for as long as the process lives, if no other process has.
func lock(name string) (taken bool, err error) {
	fd, err := syscall.Open(name, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return false, err
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, syscall.Close(fd)
	}
	return true, nil
}
