//go:build linux

package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A registry serves the packages of a folder as npm's does.
func registry(t *testing.T, dir string) (address string) {
	t.Helper()
	tarballs, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(tarballs) < 7 {
		t.Fatalf("packages %q, %v; want one of each platform and one on top", tarballs, err)
	}
	documents := make(map[string]map[string]any)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, path := range tarballs {
		content := []byte(read(t, path))
		m := manifest(t, content)
		sum := sha512.Sum512(content)
		m["dist"] = map[string]string{
			"tarball":   server.URL + "/-/" + filepath.Base(path),
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
		name, version := m["name"].(string), m["version"].(string)
		documents[name] = map[string]any{"name": name, "dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: m}}
	}
	mux.Handle("/-/", http.StripPrefix("/-/", http.FileServer(http.Dir(dir))))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		name, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
		if document := documents[name]; err == nil && document != nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(document) // npm may have gone
			return
		}
		http.NotFound(w, r)
	})
	return server.URL
}

// manifest returns the package.json of a tarball.
func manifest(t *testing.T, content []byte) (m map[string]any) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("no package.json: %v", err)
		}
		if h.Name != "package/package.json" {
			continue
		}
		text, err := io.ReadAll(r)
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// npmEnv is the environment of an npm that knows one registry, and has installed nothing.
func npmEnv(t *testing.T, dir string) []string {
	t.Helper()
	home := t.TempDir()
	return []string{
		"HOME=" + home, "npm_config_registry=" + registry(t, filepath.Join(dir, "npm")), "npm_config_cache=" + filepath.Join(home, "cache"),
		"npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false", "npm_config_ignore_scripts=true",
	}
}

// npx runs what is not installed.
func TestNpx(t *testing.T) {
	env := npmEnv(t, packages(t))
	wrapped(t, env, "npx", "--yes", "mcpbridge")
}

// npm installs the package of this platform alone. The program ends as it is told to.
func TestNpmInstall(t *testing.T) {
	env := npmEnv(t, packages(t))
	at := t.TempDir()
	run(t, env, "npm", "install", "--prefix", at, "mcpbridge")
	installed, err := filepath.Glob(filepath.Join(at, "node_modules/@mcpbridge/*"))
	if err != nil || len(installed) != 1 {
		t.Errorf("installed are %q, %v; want the package of this platform", installed, err)
	}
	bin := filepath.Join(at, "node_modules/.bin/mcpbridge")
	if got := run(t, env, bin, "version"); !strings.HasPrefix(got, "mcpbridge ") {
		t.Errorf("version = %s", got)
	}
	wrapped(t, env, bin)
	if out, err := exec.Command(bin, "check").CombinedOutput(); exitCode(err) != 2 {
		t.Errorf("check of nothing ended with %v: %s", err, out)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		endsWith(t, sig, bin)
	}
}

// endsWith wants serve to end in order at a signal, which it gets from the launcher, or
// with it from a terminal.
func endsWith(t *testing.T, sig syscall.Signal, bin string) {
	t.Helper()
	cmd := exec.Command(bin, "serve", "--listen", "127.0.0.1:0", "--admin", "off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }() // fails if nothing is left
	rig.Until(t, 2*time.Minute, "serving", func() string {
		if text := read(t, log.Name()); !strings.Contains(text, "http://") {
			return "it has written " + text
		}
		return ""
	})
	to := cmd.Process.Pid
	if sig == syscall.SIGINT {
		to = -to // a terminal tells the whole group
	}
	if err := syscall.Kill(to, sig); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(read(t, log.Name()), "stopped") {
		t.Errorf("after %v serve ended with %v: %s", sig, err, read(t, log.Name()))
	}
	if err := syscall.Kill(-cmd.Process.Pid, 0); err != syscall.ESRCH {
		t.Errorf("after %v processes are left: %v", sig, err)
	}
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return 0
}

// Without the package of the platform the launcher says what to do.
func TestNpmWithoutThePlatform(t *testing.T) {
	env := npmEnv(t, packages(t))
	at := t.TempDir()
	run(t, env, "npm", "install", "--prefix", at, "--omit=optional", "mcpbridge")
	out, err := exec.Command(filepath.Join(at, "node_modules/.bin/mcpbridge"), "version").CombinedOutput()
	if exitCode(err) != 1 || !strings.Contains(string(out), "--omit=optional") {
		t.Errorf("version = %v, %s; want exit code 1 and what to do", err, out)
	}
}
