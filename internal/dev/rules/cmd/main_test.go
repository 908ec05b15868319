package main

import (
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

func TestWatchFailsWithTheRun(t *testing.T) {
	in := strings.NewReader(`{"Action":"fail","Package":"p","Test":"TestF01"}` + "\n")
	if err := run([]string{"watch", "-o", filepath.Join(t.TempDir(), "run.json")}, in, new(strings.Builder)); err == nil {
		t.Error("watch of a failed run = nil, want an error")
	}
}
