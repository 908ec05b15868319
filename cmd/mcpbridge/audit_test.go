package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// The log that is required is that of the configuration: on a full disk requests get 503, and
// the metric says so, until a file takes its place. A text is the file alone, as before.
func TestAuditRequired(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for _, required := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "audit")
		if err := os.Symlink("/dev/full", path); err != nil {
			t.Fatal(err)
		}
		value := path
		if required {
			value = "{file: " + path + ", required: true}"
		}
		r := serveFile(t, "audit: "+value+"\n"+oneNotebook, "--watch=false")
		metric := func(line string) bool {
			_, body := get(t, r.admin("/metrics"))
			return strings.Contains(body, line+"\n")
		}
		url := r.Endpoints[0].URL // its first line was that of the start
		bridgetest.Eventually(t, "lines can't be written", func() bool { return metric("mcpbridge_audit_failing 1") })
		want := http.StatusOK
		if required {
			want = http.StatusServiceUnavailable
		}
		if got := initializeAs(t, url, ""); got != want {
			t.Errorf("required %v: initialize = %d on a full disk, want %d", required, got, want)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		bridgetest.Eventually(t, "lines are written", func() bool { return metric("mcpbridge_audit_failing 0") })
		if got := initializeAs(t, url, ""); got != http.StatusOK || !metric("mcpbridge_audit_lost_total 0") {
			t.Errorf("required %v: initialize = %d with a file", required, got)
		}
		bridgetest.Eventually(t, "the log has all lines", func() bool {
			text, _ := os.ReadFile(path)
			return strings.Contains(string(text), `"method":"start"`) && strings.Contains(string(text), `"method":"initialize"`)
		})
	}
}

// A wrong token at the admin address has a line.
func TestAuditOfTheAdminAddress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	r := serveFile(t, "audit: "+path+"\nadmin_token: the-right-token-of-admin\n"+oneNotebook, "--watch=false")
	req, err := http.NewRequest(http.MethodGet, r.admin("/api/state"), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer wrong-token-of-admin")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	bridgetest.Eventually(t, "the attempt is recorded", func() bool {
		text, _ := os.ReadFile(path)
		if strings.Contains(string(text), "wrong-token") {
			t.Fatal("the log has the token")
		}
		return strings.Contains(string(text), `"address":"127.0.0.1:`) && strings.Contains(string(text), `"method":"authenticate","kind":"credential","name":"admin","decision":"deny","reason":"admin_token"`)
	})
}

// Servers have lines, too: that the first list was accepted, and what was met later and was not.
func TestAuditOfPinnedServers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit")
	r := serveFile(t, "state_dir: "+dir+"\naudit: "+path+"\nservers: {book: {builtin: notebook, pin: refuse}}")
	for _, args := range [][]string{{}, {"enable_search"}, {}} { // lists, calls, and lists
		if got := runCommand(t.Context(), nil, append([]string{"call", r.Endpoints[0].URL}, args...)...); got.code != 0 {
			t.Fatalf("call %q = %d, %q", args, got.code, got.err)
		}
	}
	for _, want := range []string{
		`"server":"book","method":"pin","kind":"tool","decision":"allow","reason":"the tools of the first complete list were accepted","digest":"sha256:`,
		`"server":"book","method":"pin","kind":"tool","name":"search","decision":"deny","reason":"tool is new","digest":"sha256:`,
	} {
		bridgetest.Eventually(t, "the log has "+want, func() bool {
			text, _ := os.ReadFile(path)
			return strings.Count(string(text), want) == 1
		})
	}
}

// A log that was rotated goes on in a file of the same name, with a reload between, as logrotate
// asks for it, and without one.
func TestAuditRotated(t *testing.T) {
	for _, reloads := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "audit")
		r := serveFile(t, "audit: {file: "+path+", required: true}\n"+oneNotebook, "--watch=false")
		has := func(file, method string) func() bool {
			return func() bool {
				text, _ := os.ReadFile(file)
				return strings.Contains(string(text), `"method":"`+method+`"`)
			}
		}
		bridgetest.Eventually(t, "the first line is written", has(path, "start"))
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		if reloads {
			if status, o := r.reload(); status != http.StatusOK {
				t.Fatalf("POST /reload = %d %+v", status, o)
			}
		}
		if got := initializeAs(t, r.Endpoints[0].URL, ""); got != http.StatusOK {
			t.Errorf("initialize = %d after the rotation", got)
		}
		bridgetest.Eventually(t, "the next file is written", has(path, "initialize"))
		if has(path+".1", "initialize")() || has(path, "start")() {
			t.Error("lines are in the wrong file")
		}
	}
}
