package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// crashCommand is a server of an era that notes when it starts, and crashes on every
// tools/call.
func crashCommand(args []string) int {
	starts, err := os.OpenFile(args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(starts, time.Now().UnixMilli())
	}
	if err != nil {
		return exitCode(err, os.Stderr)
	}
	answers := map[string]string{
		spec.MethodInitialize: backtest.SaysWelcome,
		spec.MethodDiscover:   backtest.SaysModern,
		spec.MethodToolsList:  `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[{"name":"crash","inputSchema":{"type":"object"}}]}}`,
	}
	delete(answers, map[string]string{"legacy": spec.MethodDiscover, "modern": spec.MethodInitialize}[args[0]])
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch m, _ := wire.Parse(in.Bytes(), wire.Options{}); {
		case m.Method == spec.MethodToolsCall:
			fmt.Fprintln(os.Stderr, "out of luck")
			return 3
		case !m.ID.IsZero():
			fmt.Println("not JSON")
			fmt.Println(strings.ReplaceAll(answers[m.Method], "%s", m.ID.String()))
		}
	}
	return 0
}

// environCommand writes its environment to a file, and is silent.
func environCommand(args []string) int {
	text, err := json.Marshal(os.Environ())
	if err == nil {
		err = os.WriteFile(args[0]+".part", text, 0o600)
	}
	if err == nil {
		err = os.Rename(args[0]+".part", args[0])
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
	}
	return exitCode(err, os.Stderr)
}

func init() {
	children["crash"], children["environ"] = crashCommand, environCommand
}

// startTimes returns when the command was started, in milliseconds.
func startTimes(t *testing.T, file string) (at []int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		ms, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, ms)
	}
	return at
}

// A command that crashes is started again, later each time, and the log says how it
// ended, what it said and that there is another.
func TestU04CrashRestartsWithBackoff(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "starts")
			path := configFile(t, fmt.Sprintf(`servers: {unlucky: {command: %q, args: [crash, %s, %q], era: %s, env: {GORACE: atexit_sleep_ms=0}}}`, os.Args[0], era, file, era))
			s := serve(t, nil, "-c", path)
			url := s.Endpoints[0].URL
			for range 5 {
				if got := runCommand(t.Context(), nil, "call", url, "crash"); got.code != exitFailure || got.out != "" {
					t.Fatalf("call = %+v, want it to fail", got)
				}
			}
			// The first rest is none, and then they double: 200, 400, 800 ms.
			bridgetest.Eventually(t, "served again", func() bool { return runCommand(t.Context(), nil, "call", url).code == 0 })
			at := startTimes(t, file)
			t.Logf("started at %v ms", at)
			if n := len(at); n < 4 || n > 9 {
				t.Errorf("started %d times for 5 crashes", n)
			}
			if longest := longestGap(at); longest < 350 {
				t.Errorf("started at %v, want pauses that grow", at)
			}
			for _, want := range []string{`"msg":"command ended by itself","upstream":"unlucky"`, `"status":"exit status 3"`,
				`"msg":"server wrote to standard error","upstream":"unlucky","line":"out of luck"`, `"msg":"skipping output that is not a message","upstream":"unlucky","line":"not JSON"`} {
				if !strings.Contains(s.log.String(), want) {
					t.Errorf("the log lacks %s:\n%s", want, s.log)
				}
			}
		})
	}
}

func longestGap(at []int) (longest int) {
	for i := 1; i < len(at); i++ {
		longest = max(longest, at[i]-at[i-1])
	}
	return longest
}

// A command gets what programs need to run, and what the configuration names; what
// else serve was given is none of its business.
func TestU04EnvironmentOfAServedCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "environ")
	path := configFile(t, fmt.Sprintf(`servers: {silent: {command: %q, args: [environ, %q], env: {NODE_ENV: production, GORACE: atexit_sleep_ms=0}}}`, os.Args[0], file))
	serve(t, []string{"PATH=/bin:/usr/bin", "HOME=/home/ada", "AWS_SECRET_ACCESS_KEY=s3cret", "MCPBRIDGE_LOG__LEVEL=info"}, "-c", path)
	bridgetest.Eventually(t, "started", func() bool { _, err := os.Stat(file); return err == nil })
	text, err := os.ReadFile(file)
	var got []string
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	slices.Sort(got)
	marked := len(got)
	got = slices.DeleteFunc(got, func(v string) bool { return strings.HasPrefix(v, "STARTED_BY_MCPBRIDGE=") })
	marked -= len(got)
	want := []string{"GORACE=atexit_sleep_ms=0", "HOME=/home/ada", "NODE_ENV=production", "PATH=/bin:/usr/bin"}
	if err != nil || marked != 1 || !slices.Equal(got, want) {
		t.Errorf("environment = %q, %v, and %d marks; want %q, and one", got, err, marked, want)
	}
}
