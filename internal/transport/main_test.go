package transport

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// childVar makes the test binary run as one of the children below.
const childVar = "TRANSPORT_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		children[name]()
		os.Exit(0)
	}
	os.Exit(bridgetest.Main(m))
}

// children are servers that run in a process of their own.
var children = map[string]func(){
	// echo answers each line with itself.
	"echo": func() { io.Copy(os.Stdout, os.Stdin) },
	// length answers each line with its length, to show what was sent.
	"length": func() {
		for in := bufio.NewReader(os.Stdin); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			quoted, _ := json.Marshal(line[:min(len(line), 100)])
			fmt.Printf("{\"length\":%d,\"start\":%s}\n", len(line), quoted)
		}
	},
	"env": func() {
		out, _ := json.Marshal(os.Environ())
		fmt.Printf("%s\n", out)
	},
	"say":   func() { fmt.Print(os.Getenv("SAY")) },
	"crash": func() { fmt.Fprint(os.Stderr, os.Getenv("SAY")); os.Exit(3) },
	// noisy writes lines of 100 bytes until they are SIZE, and crashes.
	"noisy": func() {
		to := map[string]*os.File{"stderr": os.Stderr, "stdout": os.Stdout}[os.Getenv("TO")]
		size, _ := strconv.Atoi(os.Getenv("SIZE"))
		block := strings.Repeat(strings.Repeat("x", 99)+"\n", 100)
		for n := 0; n < size; n += len(block) {
			fmt.Fprint(to, block)
		}
		fmt.Fprint(to, "the end\n")
		os.Exit(3)
	},
	// faint closes its input a moment before it crashes.
	"faint": func() {
		_ = os.Stdin.Close()
		fmt.Println("{}")
		time.Sleep(50 * time.Millisecond)
		fmt.Fprintln(os.Stderr, "API_KEY is not set")
		os.Exit(3)
	},
	// deaf does not end with its input, but at SIGTERM.
	"deaf": func() {
		fmt.Println(`{"pid":` + fmt.Sprint(os.Getpid()) + `}`)
		time.Sleep(time.Hour)
	},
	// idle writes nothing, and does not end by itself.
	"idle": func() { time.Sleep(time.Hour) },
	// stubborn ignores SIGTERM too.
	"stubborn": func() {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(`{"pid":` + fmt.Sprint(os.Getpid()) + `}`)
		time.Sleep(time.Hour)
	},
	// parent has a stubborn child that holds its output streams. It ends with
	// its first input, or stays for as long as its child does, stubborn or not.
	"parent": func() {
		if strings.HasSuffix(os.Getenv("SAY"), "stubborn") {
			signal.Ignore(syscall.SIGTERM)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVar+"=stubborn")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		if strings.HasPrefix(os.Getenv("SAY"), "stay") {
			cmd.Wait()
		}
		os.Stdin.Read(make([]byte, 1))
	},
	// flood writes everything before it reads its input.
	"flood": func() {
		fmt.Println(`{"flood":true}`)
		line := "{" + strings.Repeat(" ", 1<<16) + "}\n"
		for range 100 {
			fmt.Print(line)
		}
		io.Copy(io.Discard, os.Stdin)
	},
}
