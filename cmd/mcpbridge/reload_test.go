package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/reload"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A reloaded is serve with a file that changes.
type reloaded struct {
	*running
	t    *testing.T
	file string
}

func serveFile(t *testing.T, text string, args ...string) *reloaded {
	t.Helper()
	r := &reloaded{t: t, file: filepath.Join(t.TempDir(), "config.yaml")}
	r.write(text)
	r.running = serve(t, nil, append([]string{r.file}, args...)...)
	return r
}

// write replaces the file: one that is written where it is may be read empty.
func (r *reloaded) write(text string) {
	r.t.Helper()
	whole := filepath.Join(r.t.TempDir(), "whole")
	if err := os.WriteFile(whole, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(whole, r.file); err != nil {
		r.t.Fatal(err)
	}
}

// admin returns a URL of the admin address.
func (r *reloaded) admin(path string) string {
	return r.Admin + path
}

// reload posts to the admin address.
func (r *reloaded) reload() (status int, o reload.Outcome) {
	r.t.Helper()
	resp, err := http.Post(r.admin("/reload"), "", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&o); err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, o
}

// has reports whether a server is served.
func (r *reloaded) has(name string) bool {
	_, body := get(r.t, r.admin("/readyz"))
	return strings.Contains(body, `"name":"`+name+`"`)
}

const oneNotebook = "servers:\n  a: {builtin: notebook}\n"

// A changed file is noticed, and one with a mistake changes nothing but what is said of it.
func TestReloadWatched(t *testing.T) {
	r := serveFile(t, oneNotebook)
	r.write(oneNotebook + "  b: {builtin: notebook}\n")
	bridgetest.Eventually(t, "b is served", func() bool { return r.has("b") })
	r.write(oneNotebook + "  c: {biltin: notebook}\n")
	bridgetest.Eventually(t, "the mistake is told of", func() bool {
		_, body := get(t, r.admin("/readyz"))
		return strings.Contains(body, `"line":3`) && strings.Contains(body, "did you mean builtin?")
	})
	if !r.has("b") || r.has("c") {
		t.Error("a file with a mistake has changed what is served")
	}
	bridgetest.Eventually(t, "the metrics say that the configuration can't be used", func() bool {
		_, body := get(t, r.admin("/metrics"))
		return strings.Contains(body, "mcpbridge_config_last_reload_successful 0")
	})
	r.write(oneNotebook)
	bridgetest.Eventually(t, "b is gone", func() bool { return !r.has("b") })
	bridgetest.Eventually(t, "the metrics say that the configuration is in use again", func() bool {
		_, body := get(t, r.admin("/metrics"))
		return strings.Contains(body, "mcpbridge_config_last_reload_successful 1") && strings.Contains(body, `mcpbridge_config_reloads_total{result="error"} 1`)
	})
}

// POST /reload answers what has changed, or what is wrong.
func TestReloadPosted(t *testing.T) {
	r := serveFile(t, oneNotebook, "--watch=false")
	r.write("log: {level: debug, format: text}\nservers:\n  a: {builtin: notebook, linger: 3s}\n  b: {builtin: modern-notebook}\n")
	time.Sleep(500 * time.Millisecond) // nothing is to happen
	if r.has("b") {
		t.Error("the file was read again, with --watch=false")
	}
	status, o := r.reload()
	if status != 200 || !o.OK || strings.Join(o.Added, " ") != "b" || strings.Join(o.Changed, " ") != "a" || strings.Join(o.NeedsRestart, " ") != "log.format" {
		t.Errorf("POST /reload = %d %+v", status, o)
	}
	r.write("log: {level: debug, format: text}\nservers:\n  a: {builtin: notebook, linger: 4s}\n  b: {builtin: modern-notebook}\n")
	if status, o = r.reload(); status != 200 { // a connects again, which is a detail
		t.Errorf("POST /reload = %d %+v", status, o)
	}
	bridgetest.Eventually(t, "the log has details", func() bool { return strings.Contains(r.log.String(), `"level":"DEBUG"`) })
	r.write("servers:\n  a: {builtin: notebook}\nlimits: {body: lots}\n")
	status, o = r.reload()
	if status != 422 || o.OK || o.File != r.file || o.Line != 3 || !strings.Contains(o.Error, "limits.body") {
		t.Errorf("POST /reload of a mistake = %d %+v", status, o)
	}
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	if status, o = r.reload(); status != 422 || o.OK || !strings.Contains(o.Error, "no such file") {
		t.Errorf("POST /reload without the file = %d %+v", status, o)
	}
	if !r.has("a") || !r.has("b") {
		t.Error("servers are gone")
	}
}

// The audit log has who asked for a reload, and what became of it.
func TestReloadAudited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	audited := "audit: " + path + "\n" + oneNotebook
	r := serveFile(t, audited, "--watch=false")
	if status, o := r.reload(); status != 200 {
		t.Fatalf("POST /reload = %d %+v", status, o)
	}
	r.write(audited + "limits: {body: lots}\n")
	if status, o := r.reload(); status != 422 {
		t.Fatalf("POST /reload of a mistake = %d %+v", status, o)
	}
	r.write(audited + "  b: {url: 'http://127.0.0.1:1/', headers: {X-Key: s3cret-of-16-bytes}}\nlimits: {body: 70000}\n")
	if status, o := r.reload(); status != 200 {
		t.Fatalf("POST /reload of another configuration = %d %+v", status, o)
	}
	var last string
	defer func() {
		if t.Failed() {
			t.Log(last)
		}
	}()
	bridgetest.Eventually(t, "the reloads are in the audit log", func() bool {
		text, _ := os.ReadFile(path)
		last = string(text)
		if strings.Contains(string(text), "s3cret") {
			t.Fatalf("the log has a secret: %s", text)
		}
		return strings.Contains(string(text), `"method":"reload","kind":"configuration","name":"POST /reload","decision":"allow","outcome":"ok"`) &&
			strings.Contains(string(text), `"changed":["limits.body","servers.b"]`) && strings.Contains(string(text), `"address":"127.0.0.1:`) && strings.Contains(string(text), `"method":"start","kind":"process"`) &&
			strings.Contains(string(text), "limits.body") && strings.Contains(string(text), `"outcome":"failed"`)
	})
}

// Without a file there is nothing to read again.
func TestReloadWithoutAFile(t *testing.T) {
	s := serve(t, nil)
	resp, err := http.Post(s.Admin+"/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode == 200 {
		t.Error("POST /reload without a file = 200")
	}
}

// A token in a file counts from the next request; the server goes on.
func TestReloadRereadsFiles(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("first-token-0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := serveFile(t, oneNotebook+"auth:\n  tokens:\n    - {name: ada, token: \"${file:"+token+"}\"}\n")
	as := func(token string) int { return initializeAs(t, r.Endpoints[0].URL, "Bearer "+token) }
	if got := as("first-token-0123"); got != 200 {
		t.Fatalf("with the first token = %d", got)
	}
	if err := os.WriteFile(token, []byte("second-token-0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bridgetest.Eventually(t, "the second token counts", func() bool { return as("second-token-0123") == 200 })
	if got := as("first-token-0123"); got != 401 {
		t.Errorf("with the first token = %d, want 401", got)
	}
	bridgetest.Eventually(t, "the log says so", func() bool { return strings.Contains(r.log.String(), `"renewed":["a"]`) })
}

// Files of include are noticed as they come, change and go, also in a folder that is new.
func TestReloadIncluded(t *testing.T) {
	r := serveFile(t, "include: conf.d/*.yaml\n"+oneNotebook)
	folder := filepath.Join(filepath.Dir(r.file), "conf.d")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("b.yaml", "servers: {b: {builtin: notebook}}\n")
	bridgetest.Eventually(t, "b is served", func() bool { return r.has("b") })
	write("c.yaml", "servers: {c: {builtin: notebook}}\n")
	bridgetest.Eventually(t, "c is served", func() bool { return r.has("c") })
	write("b.yaml", "servers: {b2: {builtin: notebook}}\n")
	bridgetest.Eventually(t, "b2 is served instead of b", func() bool { return r.has("b2") && !r.has("b") })
	write("c.yaml", "\nservers: {c: {biltin: notebook}}\n")
	bridgetest.Eventually(t, "the mistake is told of with its file", func() bool {
		_, body := get(t, r.admin("/readyz"))
		return strings.Contains(body, `"line":2`) && strings.Contains(body, filepath.Join("conf.d", "c.yaml"))
	})
	if err := os.Remove(filepath.Join(folder, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	bridgetest.Eventually(t, "c is gone", func() bool { return !r.has("c") })
	if !r.has("a") || !r.has("b2") {
		t.Error("other servers are gone, too")
	}
}

// A file that only a configuration with a mistake includes is watched: mending it is enough.
func TestReloadMendedInclude(t *testing.T) {
	r := serveFile(t, oneNotebook)
	dir := filepath.Dir(r.file)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mistake := func(file string, line int) {
		t.Helper()
		bridgetest.Eventually(t, "the mistake is told of with its file", func() bool {
			_, body := get(t, r.admin("/readyz"))
			return strings.Contains(body, fmt.Sprintf(`"file":%q,"line":%d`, filepath.Join(dir, file), line))
		})
		if !r.has("a") || r.has("b") || r.has("c") {
			t.Error("a mistake has changed what is served")
		}
	}
	write("b.yaml", "servers: {b: {biltin: notebook}}\n")
	r.write("include: [b.yaml, other/*.yaml, c.yaml]\n" + oneNotebook)
	mistake("config.yaml", 1) // there is no c.yaml
	write("c.yaml", "\nservers: {c: {biltin: notebook}}\n")
	mistake("b.yaml", 1)
	write("b.yaml", "servers: {b: {builtin: notebook}}\n")
	mistake("c.yaml", 2)
	write("c.yaml", "servers: {c: {builtin: notebook}}\n")
	bridgetest.Eventually(t, "all are served", func() bool { return r.has("a") && r.has("b") && r.has("c") })
}

// So is one of a configuration that only the gateway refuses, and whose error names no file.
func TestReloadMendedRefusal(t *testing.T) {
	r := serveFile(t, oneNotebook)
	included := filepath.Join(filepath.Dir(r.file), "b.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(included, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("audit: " + filepath.Join(t.TempDir(), "none", "audit.log") + "\n")
	r.write("include: b.yaml\n" + oneNotebook)
	bridgetest.Eventually(t, "the audit log can't be opened", func() bool {
		_, body := get(t, r.admin("/readyz"))
		return strings.Contains(body, "opening the audit log")
	})
	write("servers: {b: {builtin: notebook}}\n")
	bridgetest.Eventually(t, "b is served", func() bool { return r.has("b") })
}
