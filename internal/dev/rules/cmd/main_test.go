package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const record = `{"Action":"run","Package":"p","Test":"TestF01"}
{"Action":"pass","Package":"p","Test":"TestF01"}
{"Action":"pass","Package":"p"}
`

func TestWatchThenJudge(t *testing.T) {
	dir := t.TempDir()
	kept, list := filepath.Join(dir, "run.json"), filepath.Join(dir, "rules.md")
	var out strings.Builder
	if err := run([]string{"watch", "-o", kept}, strings.NewReader(record), &out); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(kept); err != nil || string(got) != record {
		t.Errorf("watch kept %q, %v, want %q", got, err, record)
	}
	for _, tt := range []struct {
		name, list string
		proven     bool
	}{
		{"all that is due is proven", "| F-01 | due | x | a |\n| F-02 | open: later | | b |", true},
		{"something due is not", "| F-01 | due | x | a |\n| F-02 | due | x | b |", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(list, []byte(tt.list), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := run([]string{"judge", "-list", list, kept}, nil, &out); (err == nil) != tt.proven {
				t.Errorf("judge = %v, want proven = %v", err, tt.proven)
			}
		})
	}
}

// A package in which the race detector itself has failed is run again; a failed test stays one.
func TestWatchTellsAFailedDetectorFromAFailedTest(t *testing.T) {
	const crash = `{"Action":"output","Package":"p","Test":"TestF01","Output":"ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346\n"}
{"Action":"fail","Package":"p"}
`
	for _, tt := range []struct {
		name, record, crashed string
		flag                  bool
		failed                bool
	}{
		{"the detector", crash, "p", true, false},
		{"nobody asks", crash, "", false, true},
		{"a test, too", `{"Action":"fail","Package":"p","Test":"TestF02"}` + "\n" + crash, "", true, true},
		{"another package, too", crash + `{"Action":"fail","Package":"q"}`, "p", true, true},
		{"a test", `{"Action":"fail","Package":"p","Test":"TestF01"}` + "\n" + `{"Action":"fail","Package":"p"}`, "", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			args, list := []string{"watch", "-o", filepath.Join(dir, "run.json")}, filepath.Join(dir, "crashed.txt")
			if tt.flag {
				args = append(args, "-crashed", list)
			}
			var out strings.Builder
			if err := run(args, strings.NewReader(tt.record), &out); (err != nil) != tt.failed {
				t.Errorf("watch = %v, want an error: %v", err, tt.failed)
			}
			if got, err := os.ReadFile(list); (err == nil) != tt.flag || string(got) != tt.crashed {
				t.Errorf("listed %q, %v, want %q", got, err, tt.crashed)
			}
			if strings.Contains(tt.record, "CHECK") && !strings.Contains(out.String(), "CHECK failed") {
				t.Errorf("printed %q, want what the test that did not end has written", out.String())
			}
		})
	}
}

func TestWatchFailsWithTheRun(t *testing.T) {
	in := strings.NewReader(`{"Action":"fail","Package":"p","Test":"TestF01"}` + "\n")
	if err := run([]string{"watch", "-o", filepath.Join(t.TempDir(), "run.json")}, in, new(strings.Builder)); err == nil {
		t.Error("watch of a failed run = nil, want an error")
	}
}

// What failed in any of the records is said once, at the end.
func TestReasons(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.json"), filepath.Join(dir, "second.json")
	const failure = `{"Action":"output","Package":"q","Test":"TestX","Output":"    x_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"q","Test":"TestX","Elapsed":1}
`
	if err := errors.Join(os.WriteFile(first, []byte(record), 0o600), os.WriteFile(second, []byte(failure), 0o600)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	const want = "q TestX failed after 1.0s\n    x_test.go:3: got 1, want 2\n"
	if err := run([]string{"reasons", first, second}, nil, &out); err != nil || out.String() != want {
		t.Errorf("reasons = %q, %v, want %q", out.String(), err, want)
	}
}
