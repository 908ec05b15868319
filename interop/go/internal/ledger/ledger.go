// Package ledger answers one question: what has a server of interop/ really got and told,
// whatever clients say?
//
// legacy-go and modern-go write each message down in a file, the ledger, and are told at
// /admin what to do. The package knows nothing of what stands before them.
package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"testing"
)

// An Entry is a line of a ledger. Each kind has some of its members.
type Entry struct {
	At            int64  // Unix time in nanoseconds
	What          string // start, call, touch, sent and others
	URI, Kind     string
	Method        string
	Version, PID  int
	Nonce, Answer string
	Session       string
}

// Read reads a ledger: the lines of all the processes that there were.
func Read(t testing.TB, file string) (out []Entry) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("ledger line %q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

// An Admin is where a server is told what to do.
type Admin struct {
	Client *http.Client
	Addr   string
}

// Tell sends a command, and decodes what the server answers.
func (a Admin) Tell(method, command string, values url.Values, into any) error {
	req, err := http.NewRequest(method, "http://"+a.Addr+"/admin/"+command+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := a.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d: %s, %v", command, res.StatusCode, text, err)
	}
	return json.Unmarshal(text, into)
}

// Touch makes so many new versions of each URI, and returns when.
func (a Admin) Touch(times int, uris ...string) ([]Entry, error) {
	var out struct{ Entries []Entry }
	err := a.Tell(http.MethodPost, "touch", url.Values{"uri": uris, "times": {fmt.Sprint(times)}}, &out)
	return out.Entries, err
}
