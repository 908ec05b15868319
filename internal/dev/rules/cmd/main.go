// Command cmd is the program behind "make check" and "make rules".
//
//	cmd watch -o FILE [-v] [-crashed LIST]
//	                             reads "go test -json" from standard input, keeps it
//	                             in FILE and prints it for people; fails if a test did;
//	                             packages in which the race detector itself failed,
//	                             and no test, are no failure, but written to LIST
//	cmd judge -list FILE [-v] RECORD...
//	                             prints which rules of the list the records prove;
//	                             fails if one that is due is not among them
//	cmd failed RECORD...         prints which tests failed, with the beginning and the end
//	                             of their output
//	cmd reasons RECORD...        prints in few lines which tests failed, and what they say
//	                             of themselves
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/dev/rules"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("want watch, judge, failed or reasons")
	}
	switch args[0] {
	case "watch":
		return watch(args[1:], in, out)
	case "judge":
		return judge(args[1:], out)
	case "failed":
		return failed(args[1:], out)
	case "reasons":
		return reasons(args[1:], out)
	}
	return fmt.Errorf("unknown command %q, want watch, judge, failed or reasons", args[0])
}

func watch(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("watch", flag.ContinueOnError)
	file := flags.String("o", "", "`file` to keep the record in")
	tests := flags.Bool("v", false, "print a line per test")
	crashed := flags.String("crashed", "", "`file` for packages in which the race detector failed, and no test")
	if err := flags.Parse(args); err != nil {
		return err
	}
	record, err := os.Create(*file)
	if err != nil {
		return err
	}
	w := rules.NewWatcher(out, *tests)
	err = rules.Events(io.TeeReader(in, record), w.Event)
	if *crashed != "" {
		err = errors.Join(err, os.WriteFile(*crashed, []byte(strings.Join(w.TakeCrashed(), "\n")), 0o600))
	}
	return errors.Join(err, record.Close(), w.Err())
}

func judge(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("judge", flag.ContinueOnError)
	list := flags.String("list", "", "`file` with the list of rules")
	verbose := flags.Bool("v", false, "list the tests of each rule")
	if err := flags.Parse(args); err != nil {
		return err
	}
	want, err := readList(*list)
	if err != nil {
		return err
	}
	rec := rules.NewRecord()
	for _, name := range flags.Args() {
		if err := readRecord(rec, name); err != nil {
			return err
		}
	}
	report := rules.Judge(want, rec)
	report.Print(out, *verbose)
	if n := len(report.Missing()); n > 0 {
		return fmt.Errorf("%d rules are due and proven by no test", n)
	}
	return nil
}

func failed(names []string, out io.Writer) error {
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = rules.WriteFailed(out, f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func reasons(names []string, out io.Writer) error {
	var runs []io.Reader
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		runs = append(runs, f)
	}
	return rules.WriteReasons(out, runs...)
}

func readList(name string) ([]rules.Rule, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := rules.ReadList(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

func readRecord(rec *rules.Record, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := rec.Read(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
