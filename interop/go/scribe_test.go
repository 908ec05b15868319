package interop

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/tap"
)

// scribeFlag makes this program a scribe: scribeFlag FILE command args… runs the
// command on its own pipes, and writes into a file that begins with FILE what passes,
// a tap.Passed on each line.
const scribeFlag = "interop-scribe"

// patience is how long a command may take to end after its input has, before it is
// told to: server-everything does not by itself.
const patience = 2 * time.Second

// scribe ends with the command, whose input ends with the scribe's.
func scribe(file string, argv []string) error {
	out, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var mu sync.Mutex // keeps the notes' lines whole
	notes := json.NewEncoder(out)
	pass := func(from io.Reader, to io.WriteCloser, up bool) {
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			mu.Lock()
			_ = notes.Encode(tap.Passed{Stream: "pipe", Up: up, Text: lines.Text()}) // the test misses it
			mu.Unlock()
			if _, err := to.Write(append(lines.Bytes(), '\n')); err != nil {
				break
			}
		}
		_ = to.Close() // the other end sees the end
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	over := make(chan struct{})
	go func() { // ends with the process
		pass(os.Stdin, in, true)
		close(over)
	}()
	go func() { // likewise
		select {
		case <-over:
			time.Sleep(patience)
		case <-term:
		}
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}()
	pass(answers, os.Stdout, false)
	_ = cmd.Wait() // how it ended is not what is written down
	return out.Close()
}

// readNotes returns what the scribe wrote that stood before the client's server.
// mcpbridge starts others, by which it knows the server.
func readNotes(t *testing.T, server, file string) record {
	t.Helper()
	files, err := filepath.Glob(file + "-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		r := readNote(t, f)
		if len(r) > 0 && !strings.Contains(r[0].Text, `"mcpbridge"`) && strings.Contains(r[0].Text, `"initialize"`) {
			return record{server, r}
		}
	}
	t.Fatalf("none of %q is of the client's server", files)
	return record{}
}

func readNote(t *testing.T, file string) (passed []tap.Passed) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var p tap.Passed
		switch err := d.Decode(&p); err {
		case nil:
			passed = append(passed, p)
		case io.EOF:
			return passed
		default:
			t.Fatal(err)
		}
	}
}
