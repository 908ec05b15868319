//go:build linux

package install

import (
	"archive/zip"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// all returns the files of the release that match, of which there have to be some.
func all(t *testing.T, pattern string, want int) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(paths) != want {
		t.Fatalf("%s: %q, %v; want %d", pattern, paths, err, want)
	}
	return paths
}

// releasedBinary is the program of the release that runs on this machine.
func releasedBinary(t *testing.T) string {
	t.Helper()
	return all(t, "mcpbridge_linux_"+runtime.GOARCH+"_*/mcpbridge", 1)[0]
}

func TestChecksums(t *testing.T) {
	release(t)
	listed := read(t, filepath.Join(dist, "checksums.txt"))
	for _, path := range slices.Concat(all(t, "*.tar.gz", 4), all(t, "*.zip", 2), all(t, "*.deb", 2), all(t, "*.rpm", 2), all(t, "*.cdx.json", 6)) {
		if !strings.Contains(listed, "  "+filepath.Base(path)+"\n") {
			t.Errorf("checksums.txt does not list %s", path)
		}
	}
	run(t, nil, "sh", "-c", `cd "$0" && sha256sum --check --strict checksums.txt`, dist)
}

// Archives have the program, what there is to read, and completions.
func TestArchives(t *testing.T) {
	version := release(t)
	want := []string{"LICENSE", "README.md", "CHANGELOG.md", "config.example.yaml", "config.schema.json", "completions/mcpbridge.bash", "completions/mcpbridge.ps1", "man/mcpbridge-serve.1.gz"}
	for _, path := range all(t, "*.tar.gz", 4) {
		names := strings.Fields(run(t, nil, "tar", "-tzf", path))
		for _, name := range append(want, "mcpbridge") {
			if !slices.Contains(names, name) {
				t.Errorf("%s has no %s: %q", path, name, names)
			}
		}
	}
	for _, path := range all(t, "*.zip", 2) {
		z, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range z.File {
			names = append(names, f.Name)
		}
		_ = z.Close()
		for _, name := range append(want, "mcpbridge.exe") {
			if !slices.Contains(names, name) {
				t.Errorf("%s has no %s: %q", path, name, names)
			}
		}
	}
	at := t.TempDir()
	run(t, nil, "tar", "-xzf", filepath.Join(dist, "mcpbridge_"+version+"_linux_"+runtime.GOARCH+".tar.gz"), "-C", at)
	if got := run(t, nil, filepath.Join(at, "mcpbridge"), "version"); !strings.HasPrefix(got, "mcpbridge v"+version+" ") {
		t.Errorf("version = %s", got)
	}
}

// Each bill of materials is valid by the published schema, and names each module of its
// binary.
func TestBills(t *testing.T) {
	release(t)
	venv := filepath.Join(t.TempDir(), "venv")
	run(t, nil, "python3", "-m", "venv", venv)
	run(t, nil, filepath.Join(venv, "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "cyclonedx-python-lib[json-validation]")
	const validate = `
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for path in sys.argv[1:]:
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(path).read())
    if wrong:
        sys.exit(f"{path}: {wrong}")
`
	bills := all(t, "*.cdx.json", 6)
	run(t, nil, append([]string{filepath.Join(venv, "bin/python"), "-c", validate}, bills...)...)
	for _, path := range all(t, "mcpbridge_*/mcpbridge*", 6) {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		platform := strings.Split(filepath.Base(filepath.Dir(path)), "_") // mcpbridge_linux_amd64_v1
		at := slices.IndexFunc(bills, func(b string) bool { return strings.HasSuffix(b, platform[1]+"_"+platform[2]+".cdx.json") })
		var bill struct{ Components []struct{ PURL string } }
		if err := json.Unmarshal([]byte(read(t, bills[at])), &bill); err != nil {
			t.Fatal(err)
		}
		if len(bill.Components) != len(info.Deps)+1 || len(info.Deps) < 10 {
			t.Errorf("%s has %d components; the binary has %d modules and the standard library", bills[at], len(bill.Components), len(info.Deps))
		}
	}
}

// What brew and scoop are told is the release.
func TestManifests(t *testing.T) {
	version := release(t)
	cask := read(t, filepath.Join(dist, "homebrew/Casks/mcpbridge.rb"))
	if !strings.Contains(cask, `version "`+version+`"`) || strings.Count(cask, "sha256 ") != 4 || !strings.Contains(cask, `manpage "man/mcpbridge.1.gz"`) {
		t.Errorf("the cask is\n%s", cask)
	}
	var scoop struct {
		Version      string
		Architecture map[string]struct {
			URL  string
			Bin  []string
			Hash string
		}
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dist, "scoop/mcpbridge.json"))), &scoop); err != nil {
		t.Fatal(err)
	}
	if scoop.Version != version || len(scoop.Architecture) != 2 || !slices.Equal(scoop.Architecture["arm64"].Bin, []string{"mcpbridge.exe"}) {
		t.Errorf("scoop is told %+v", scoop)
	}
}

// go install takes the tree as a module, by its version, and the program knows which one
// it is.
func TestGoInstall(t *testing.T) {
	release(t)
	const module, version = "github.com/mcpbridge/mcpbridge", "v0.9.9"
	proxy := t.TempDir()
	at := filepath.Join(proxy, module, "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(at, "list"), version+"\n")
	write(t, filepath.Join(at, version+".info"), `{"Version": "`+version+`"}`)
	write(t, filepath.Join(at, version+".mod"), read(t, "../../../go.mod"))
	// What is below interop are modules of their own.
	run(t, nil, "git", "-C", "../../..", "archive", "--format=zip", "--prefix="+module+"@"+version+"/", "-o", filepath.Join(at, version+".zip"), "HEAD", "--", ".", ":!interop")
	bin := t.TempDir()
	env := []string{"GOBIN=" + bin, "GOMODCACHE=" + filepath.Join(proxy, "cache"), "GONOSUMDB=" + module, "GOFLAGS=-modcacherw -trimpath", "CGO_ENABLED=0",
		"GOPROXY=file://" + proxy + ",file://" + goModCache(t) + "/cache/download," + strings.TrimSpace(run(t, nil, "go", "env", "GOPROXY"))}
	run(t, env, "go", "install", module+"/cmd/mcpbridge@"+version)
	if got := run(t, nil, filepath.Join(bin, "mcpbridge"), "version"); !strings.HasPrefix(got, "mcpbridge version "+version+" ") {
		t.Errorf("version = %s, want %s", got, version)
	}
}

func goModCache(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(run(t, nil, "go", "env", "GOMODCACHE"))
}
