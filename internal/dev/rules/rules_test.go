package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestIDs(t *testing.T) {
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"TestM2L34OneSubscribe", []string{"M2L-34"}},
		{"TestL2M07", []string{"L2M-07"}},
		{"TestF01F02Envelope", []string{"F-01", "F-02"}},
		{"TestM2L30M2L31", []string{"M2L-30", "M2L-31"}},
		{"TestListen/M2L-22_url_mode", []string{"M2L-22"}},
		{"TestStrict/F-07 duplicate, F-08 id", []string{"F-07", "F-08"}},
		{"TestF_07", []string{"F-07"}},
		{"TestT01TasksPass", []string{"T-01"}},
		{"TestG03Names", []string{"G-03"}},
		{"TestT31T33", []string{"T-31", "T-33"}},
		{"TestHTTP01", nil},
		{"FuzzF07Envelope", []string{"F-07"}},
		{"TestSHA256", nil},
		{"TestUTF08", nil},
		{"TestF071", nil},
		{"TestF7", nil},
		{"TestIndex", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := IDs(tt.name); !slices.Equal(got, tt.want) {
				t.Errorf("IDs(%q) = %q, want %q", tt.name, got, tt.want)
			}
		})
	}
}

func TestReadList(t *testing.T) {
	list, err := ReadList(strings.NewReader(`# Rules
| id | status | where | summary |
| --- | --- | --- | --- |
| F-01 | due | gateway, legacy/front | One endpoint. |
prose about M2L-02
| M2L-02 | open: needs a front | | Sessions end. |
| T-01 | due | modern/back | Tasks pass. |
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Rule{
		{ID: "F-01", Due: true, Where: []string{"gateway", "legacy/front"}, Summary: "One endpoint."},
		{ID: "M2L-02", Where: []string{}, Reason: "needs a front", Summary: "Sessions end."},
		{ID: "T-01", Due: true, Where: []string{"modern/back"}, Summary: "Tasks pass."},
	}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("ReadList = %+v, want %+v", list, want)
	}
}

func TestReadListRefuses(t *testing.T) {
	for _, tt := range []struct{ name, doc string }{
		{"no rule", "# Rules\n"},
		{"status unknown", "| F-01 | done | a | x |"},
		{"open without a reason", "| F-01 | open: | a | x |"},
		{"no summary", "| F-01 | due | a | |"},
		{"a cell too many", "| F-01 | due | a | x | y |"},
		{"twice", "| F-01 | due | a | x |\n| F-01 | due | a | x |"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if list, err := ReadList(strings.NewReader(tt.doc)); err == nil {
				t.Errorf("ReadList(%q) = %v, want an error", tt.doc, list)
			}
		})
	}
}

// run converts "action test" lines of one package to a record.
func run(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		action, name, _ := strings.Cut(line, " ")
		fmt.Fprintf(&b, "{\"Action\":%q,\"Package\":\"p\",\"Test\":%q}\n", action, name)
	}
	return b.String()
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name    string
		runs    []string
		missing bool // the only rule, F-01, which is due
	}{
		{"passed", []string{run("run TestF01", "pass TestF01")}, false},
		{"passed as a subtest", []string{run("pass TestX/F-01_y")}, false},
		{"subtest passed, parent failed", []string{run("pass TestX/F-01_y", "fail TestX/z", "fail TestX")}, false},
		{"started only", []string{run("run TestF01")}, true},
		{"failed", []string{run("fail TestF01")}, true},
		{"skipped", []string{run("skip TestF01")}, true},
		{"a subtest of it skipped", []string{run("skip TestF01/x", "pass TestF01")}, true},
		{"passed once, failed once", []string{run("pass TestF01"), run("fail TestF01")}, true},
		{"skipped under race, passed without", []string{run("skip TestF01"), run("pass TestF01")}, false},
		{"another rule", []string{run("pass TestF02")}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := NewRecord()
			for _, r := range tt.runs {
				if err := rec.Read(strings.NewReader(r)); err != nil {
					t.Fatal(err)
				}
			}
			report := Judge([]Rule{{ID: "F-01", Due: true}}, rec)
			if got := len(report.Missing()) == 1; got != tt.missing {
				t.Errorf("F-01 missing = %v, want %v; passed tests %v", got, tt.missing, report.Tests)
			}
		})
	}
}

func TestReport(t *testing.T) {
	rec := NewRecord()
	if err := rec.Read(strings.NewReader(run("pass TestF01", "pass TestU01", "pass TestF99"))); err != nil {
		t.Fatal(err)
	}
	report := Judge([]Rule{
		{ID: "F-01", Due: true, Summary: "a"},
		{ID: "F-02", Due: true, Summary: "b"},
		{ID: "U-01", Reason: "later"},
		{ID: "U-02", Reason: "later still"},
	}, rec)
	var out strings.Builder
	report.Print(&out, true)
	const want = `F-01    TestF01
U-01    TestU01
open    U-02    later still
early   U-01    a passed test names it, the list has it as open: later
unknown F-99    a passed test names it, the list does not have it
MISSING F-02    b
rules: 2 of 4 named by a passed test; 2 due, 1 of them missing
`
	if out.String() != want {
		t.Errorf("Print wrote:\n%s\nwant:\n%s", &out, want)
	}
}

func TestEmptyRecordIsAnError(t *testing.T) {
	if err := NewRecord().Read(strings.NewReader("go: downloading x\n")); err == nil {
		t.Error("Read of a record without tests = nil, want an error")
	}
}

func TestWatcher(t *testing.T) {
	const events = `go: downloading example.com/x v1.0.0
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestB","Output":"loud\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0.2}
{"Action":"fail","Package":"p","Elapsed":0.3}
{"Action":"build-output","ImportPath":"q","Output":"q.go:1: no\n"}
{"Action":"build-fail","ImportPath":"q"}
{"Action":"skip","Package":"r","Test":"TestC","Elapsed":0}
{"Action":"pass","Package":"r","Elapsed":1.5}
`
	var out strings.Builder
	w := NewWatcher(&out, false)
	if err := Events(strings.NewReader(events), w.Event); err != nil {
		t.Fatal(err)
	}
	const want = `go: downloading example.com/x v1.0.0
loud
fail p (0.3s)
q.go:1: no
skip r TestC (0.0s)
pass r (1.5s)
`
	if out.String() != want {
		t.Errorf("the watcher wrote:\n%s\nwant:\n%s", &out, want)
	}
	if got, want := fmt.Sprint(w.Err()), "failed: p, q"; got != want {
		t.Errorf("Err() = %s, want %s", got, want)
	}
}
