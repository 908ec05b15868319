package rules

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// output is the events of a test that prints lines and then fails.
func output(pkg, name string, lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, `{"Action":"output","Package":%q,"Test":%q,"Output":%q}`+"\n", pkg, name, line+"\n")
	}
	fmt.Fprintf(&b, `{"Action":"fail","Package":%q,"Test":%q,"Elapsed":2}`+"\n", pkg, name)
	return b.String()
}

func reasonsOf(t *testing.T, runs ...string) string {
	t.Helper()
	var readers []io.Reader
	for _, run := range runs {
		readers = append(readers, strings.NewReader(run))
	}
	var got strings.Builder
	if err := WriteReasons(&got, readers...); err != nil {
		t.Fatal(err)
	}
	return got.String()
}

// A test says what it says in its own lines, of which the logs of processes are none.
func TestWriteReasonsOfATest(t *testing.T) {
	long := strings.Repeat("é", 400)
	run := output("p", "TestA", "=== RUN   TestA", "a line of a process", "        far in", "    a_test.go:7: got 1", "        want 2", "        3", "        4", "        5",
		"    world_test.go:9: A's log ends:", "        {\"level\":\"INFO\"}", "    a_test.go:8: "+long, "        more of it", `        {"time":"2026-11-27T14:15:19.49Z","level":"INFO"}`, "        after a log",
		"panic: no", "--- FAIL: TestA (2.00s)")
	want := `p TestA failed after 2.0s
    a_test.go:7: got 1
        want 2
        3
        4
    world_test.go:9: A's log ends:
    a_test.go:8: ` + strings.Repeat("é", 300-len("    a_test.go:8: ")-1) + `…
        more of it
panic: no
`
	if got := reasonsOf(t, run); got != want {
		t.Errorf("WriteReasons = %s\nwant %s", got, want)
	}
}

func TestWriteReasons(t *testing.T) {
	run := `make: something
{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
` + output("p", "TestA/one", "    a_test.go:7: got 1") + output("p", "TestA", "--- FAIL: TestA (2.00s)") +
		output("p", "TestB/two", "    b_test.go:1: no") + output("p", "TestB", "    b_test.go:2: nor this") +
		`{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:1: fine\n"}
{"Action":"pass","Package":"p","Test":"TestC"}
` + output("p", "", "FAIL")
	const other = `{"Action":"run","Package":"q","Test":"TestD"}
{"Action":"output","Package":"q","Test":"TestD","Output":"panic: test timed out after 40m0s\n"}
{"Action":"build-output","ImportPath":"r [r.test]","Output":"r/r.go:1:2: undefined: x\n"}
{"Action":"build-fail","ImportPath":"r [r.test]"}
{"Action":"fail","Package":"r","Elapsed":0}
{"Action":"pass","Package":"s"}
`
	const want = `p TestA/one failed after 2.0s
    a_test.go:7: got 1
p TestB failed after 2.0s
    b_test.go:2: nor this
p TestB/two failed after 2.0s
    b_test.go:1: no
q TestD did not end
panic: test timed out after 40m0s
r failed after 0.0s
r [r.test] does not build
    r/r.go:1:2: undefined: x
`
	if got := reasonsOf(t, run, other); got != want {
		t.Errorf("WriteReasons = %s\nwant %s", got, want)
	}
	if got := reasonsOf(t, `{"Action":"pass","Package":"s"}`); got != "" {
		t.Errorf("of a run that passed: %q", got)
	}
}

// However much failed, few lines are written, and each test has its share of them.
func TestWriteReasonsFew(t *testing.T) {
	for _, tests := range []int{1, 2, 3, 13, 39, 40, 41, 500} {
		var run strings.Builder
		for i := range tests {
			var lines []string
			for k := range 100 {
				lines = append(lines, fmt.Sprintf("    a_test.go:%d: no", k))
			}
			run.WriteString(output("p", fmt.Sprintf("Test%03d", i), lines...))
		}
		got := reasonsOf(t, run.String())
		if n := strings.Count(got, "\n"); n > reasonLines || n < reasonLines-1 {
			t.Errorf("%d tests: %d lines, want %d", tests, n, reasonLines)
		}
		if n := strings.Count(got, "p Test"); n != tests && (tests <= reasonLines || !strings.HasSuffix(got, " more]\n")) {
			t.Errorf("%d tests: %d are named:\n%s", tests, n, got)
		}
		if tests == 2 && strings.Count(got, "a_test.go") != 38 {
			t.Errorf("2 tests, of which one takes all:\n%s", got)
		}
	}
}
