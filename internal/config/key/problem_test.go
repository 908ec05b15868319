package key

import (
	"errors"
	"testing"
)

// Mistakes come in the order of the files and their lines, whoever found them first.
func TestOrder(t *testing.T) {
	r := NewReport("command line")
	if r.Err() != nil {
		t.Error("an empty report is an error")
	}
	r.Opened("a.yaml")
	r.Opened("b.yaml")
	r.Opened("a.yaml")
	r.Places["servers"] = InFile("b.yaml", 7)
	r.Fail("servers\x1fdocs.example.com", "lacks a url")
	r.FailAt(InFile("a.yaml", 10), "drain", "is %q", "x")
	r.FailAt(InFile("a.yaml", 9), "", "not readable")
	r.FailAt(Place{Source: "--listen"}, "listen", "is no address")
	r.Fail("audit", "is missing")
	want := "--listen: is no address\ncommand line: audit: is missing\na.yaml:9: not readable\na.yaml:10: drain: is \"x\"\nb.yaml:7: servers.docs.example.com: lacks a url"
	var all *Error
	if err := r.Err(); !errors.As(err, &all) || err.Error() != want {
		t.Fatalf("got\n%v\nwant\n%v", err, want)
	}
	if len(all.Files) != 2 {
		t.Errorf("files are %q", all.Files)
	}
	if file, line := all.Problems[4].At(); file != "b.yaml" || line != 7 {
		t.Errorf("At = %q, %d", file, line)
	}
	if file, line := all.Problems[0].At(); file != "" || line != 0 {
		t.Errorf("At of a flag = %q, %d", file, line)
	}
	for path, want := range map[string]bool{"servers": true, "servers\x1fdocs.example.com": true, "servers\x1fdocs": false, "serv": false, "limits": false} {
		if got := r.Mistaken(path); got != want {
			t.Errorf("Mistaken(%q) = %v, want %v", path, got, want)
		}
	}
}
