package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// built returns the packages of a release whose binaries are names.
func built(t *testing.T, version string) (npm, wheels map[string][]byte) {
	t.Helper()
	dist := t.TempDir()
	var artifacts []map[string]string
	for _, p := range platforms {
		path := filepath.Join(dist, p.goos+"-"+p.goarch)
		if err := os.WriteFile(path, []byte(p.npmName()), 0o755); err != nil {
			t.Fatal(err)
		}
		artifacts = append(artifacts, map[string]string{"type": "Binary", "goos": p.goos, "goarch": p.goarch, "path": path}, map[string]string{"type": "Archive"})
	}
	for name, v := range map[string]any{"metadata.json": map[string]string{"version": version}, "artifacts.json": artifacts} {
		text, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dist, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := run(dist, root(t)); err != nil {
		t.Fatal(err)
	}
	return files(t, filepath.Join(dist, "npm")), files(t, filepath.Join(dist, "wheels"))
}

func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]byte)
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// untar returns the files of a package of npm, and which of them may be run.
func untar(t *testing.T, content []byte) (texts map[string]string, programs []string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	texts = make(map[string]string)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return texts, programs
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if texts[h.Name] = string(text); h.Mode&0o111 != 0 {
			programs = append(programs, h.Name)
		}
	}
}

func TestNPM(t *testing.T) {
	npm, _ := built(t, "1.2.3-rc.1")
	if len(npm) != len(platforms)+1 {
		t.Errorf("packages %q, want one of each platform and one on top", slices.Collect(maps.Keys(npm)))
	}
	wanted := make(map[string]string)
	for _, p := range platforms {
		wanted[p.npmName()] = "1.2.3-rc.1"
		texts, programs := untar(t, npm["mcpbridge-"+p.npmOS+"-"+p.npmCPU+"-1.2.3-rc.1.tgz"])
		var m manifest
		if err := json.Unmarshal([]byte(texts["package/package.json"]), &m); err != nil {
			t.Fatalf("%s: %v", p.npmName(), err)
		}
		if m.Name != p.npmName() || !slices.Equal(m.OS, []string{p.npmOS}) || !slices.Equal(m.CPU, []string{p.npmCPU}) || m.License == "" {
			t.Errorf("%s: %+v", p.npmName(), m)
		}
		program := "package/bin/" + p.file()
		if !slices.Equal(programs, []string{program}) || texts[program] != p.npmName() || texts["package/LICENSE"] == "" {
			t.Errorf("%s has %q, of which %q may be run", p.npmName(), slices.Collect(maps.Keys(texts)), programs)
		}
	}
	texts, programs := untar(t, npm["mcpbridge-1.2.3-rc.1.tgz"])
	var m manifest
	if err := json.Unmarshal([]byte(texts["package/package.json"]), &m); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(m.OptionalDependencies, wanted) || !slices.Equal(programs, []string{"package/" + m.Bin["mcpbridge"]}) {
		t.Errorf("mcpbridge depends on %v and runs %q", m.OptionalDependencies, programs)
	}
}

// Installing runs nothing.
func TestHardeningNoInstallScripts(t *testing.T) {
	npm, _ := built(t, "1.2.3")
	for name, content := range npm {
		texts, _ := untar(t, content)
		var m map[string]any
		if err := json.Unmarshal([]byte(texts["package/package.json"]), &m); err != nil {
			t.Fatal(err)
		}
		if m["scripts"] != nil || m["gypfile"] != nil || texts["package/binding.gyp"] != "" {
			t.Errorf("%s runs something when it is installed: %v", name, m["scripts"])
		}
	}
}

func TestWheels(t *testing.T) {
	_, wheels := built(t, "1.2.3-rc.1")
	if len(wheels) != len(platforms) {
		t.Errorf("%d wheels, want %d", len(wheels), len(platforms))
	}
	for _, p := range platforms {
		name := "mcpbridge-1.2.3rc1-py3-none-" + p.tags + ".whl"
		content := wheels[name]
		r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		script := "mcpbridge-1.2.3rc1.data/scripts/" + p.file()
		texts := make(map[string]string)
		for _, f := range r.File {
			c, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			texts[f.Name] = string(text)
			if may := f.Mode()&0o111 != 0; may != (f.Name == script) || !f.Mode().IsRegular() {
				t.Errorf("%s: %s has the mode %v", name, f.Name, f.Mode())
			}
		}
		checkWheel(t, name, script, p, texts)
	}
}

// checkWheel holds the files of a wheel against its RECORD.
func checkWheel(t *testing.T, name, script string, p platform, texts map[string]string) {
	t.Helper()
	const info = "mcpbridge-1.2.3rc1.dist-info/"
	var want strings.Builder
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		if sum := sha256.Sum256([]byte(texts[file])); file != info+"RECORD" {
			fmt.Fprintf(&want, "%s,sha256=%s,%d\n", file, base64.RawURLEncoding.EncodeToString(sum[:]), len(texts[file]))
		}
	}
	lines := strings.SplitAfter(strings.TrimSuffix(texts[info+"RECORD"], info+"RECORD,,\n"), "\n")
	slices.Sort(lines)
	if got := strings.Join(lines, ""); got != want.String() {
		t.Errorf("%s records\n%swant\n%s", name, got, want.String())
	}
	if texts[script] != p.npmName() {
		t.Errorf("%s has the binary of %q", name, texts[script])
	}
	for tag := range strings.SplitSeq(p.tags, ".") {
		if !strings.Contains(texts[info+"WHEEL"], "Tag: py3-none-"+tag+"\n") {
			t.Errorf("%s is not for %s: %s", name, tag, texts[info+"WHEEL"])
		}
	}
}

func TestPythonVersion(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3rc1", "1.2.3-alpha.2": "1.2.3a2", "1.2.3-beta3": "1.2.3b3",
		"0.0.1-dev.1763834400": "0.0.1.dev1763834400", "1.2": "", "v1.2.3": "", "1.2.3-next": "", "1.2.3+x": "",
	} {
		if got, err := pythonVersion(version); got != want || (err == nil) != (want != "") {
			t.Errorf("pythonVersion(%s) = %q, %v, want %q", version, got, err, want)
		}
	}
}

// The same binaries give the same packages.
func TestReproducible(t *testing.T) {
	npm, wheels := built(t, "1.2.3")
	npmAgain, wheelsAgain := built(t, "1.2.3")
	for name := range npm {
		if !bytes.Equal(npm[name], npmAgain[name]) {
			t.Errorf("%s differs", name)
		}
	}
	for name := range wheels {
		if !bytes.Equal(wheels[name], wheelsAgain[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

// The packages are those of the platforms for which goreleaser builds.
func TestPlatformsAreThoseOfGoreleaser(t *testing.T) {
	text, err := os.ReadFile("../../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"goos: [linux, darwin, windows]", "goarch: [amd64, arm64]"} {
		if !strings.Contains(string(text), want) {
			t.Errorf(".goreleaser.yaml does not say %s", want)
		}
	}
	if err := (&release{}).add("plan9", "amd64", ""); err == nil {
		t.Error("a binary for plan9 has no package, and nobody says so")
	}
}
