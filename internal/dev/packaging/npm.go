package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	summary    = "Gateway between MCP clients and servers of different revisions"
	repository = "https://github.com/mcpbridge/mcpbridge"
	license    = "Apache-2.0"
)

// A manifest is package.json. It has no scripts, on purpose.
type manifest struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	Keywords    []string          `json:"keywords"`
	Homepage    string            `json:"homepage"`
	Repository  map[string]string `json:"repository"`
	License     string            `json:"license"`
	Bin         map[string]string `json:"bin,omitempty"`
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	Engines     map[string]string `json:"engines,omitempty"`
	// PreferUnplugged has Yarn keep the binary in a file that can be run.
	PreferUnplugged      bool              `json:"preferUnplugged,omitempty"`
	OptionalDependencies map[string]string `json:"optionalDependencies,omitempty"`
	PublishConfig        map[string]any    `json:"publishConfig"`
}

func (r *release) manifest(name string) *manifest {
	return &manifest{
		Name: name, Version: r.version, Description: summary, Keywords: []string{"mcp", "modelcontextprotocol", "gateway", "proxy"},
		Homepage: repository, Repository: map[string]string{"type": "git", "url": "git+" + repository + ".git"}, License: license,
		PublishConfig: map[string]any{"access": "public", "provenance": true},
	}
}

// npmPackages returns the packages as npm has them, by the names of their files: one of
// each platform, and mcpbridge, of which npm installs the one that fits.
func (r *release) npmPackages() (map[string][]byte, error) {
	out := make(map[string][]byte)
	top := r.manifest("mcpbridge")
	top.Bin = map[string]string{"mcpbridge": "bin/mcpbridge.js"}
	top.Engines = map[string]string{"node": ">=18"}
	top.OptionalDependencies = make(map[string]string)
	for p, binary := range r.binaries {
		m := r.manifest(p.npmName())
		m.Description = fmt.Sprintf("%s: the binary for %s on %s", summary, p.npmOS, p.npmCPU)
		m.OS, m.CPU, m.PreferUnplugged = []string{p.npmOS}, []string{p.npmCPU}, true
		top.OptionalDependencies[m.Name] = r.version
		if err := r.pack(out, m, file{"bin/" + p.file(), 0o755, binary}); err != nil {
			return nil, err
		}
	}
	return out, r.pack(out, top, file{"bin/mcpbridge.js", 0o755, r.launcher})
}

// pack adds the tarball of one package.
func (r *release) pack(to map[string][]byte, m *manifest, f file) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	tarball, err := tarball(
		file{"package.json", 0o644, append(text, '\n')}, file{"LICENSE", 0o644, r.license}, file{"README.md", 0o644, r.npm}, f)
	to[strings.NewReplacer("@", "", "/", "-").Replace(m.Name)+"-"+r.version+".tgz"] = tarball
	return err
}

// A file is one of a package.
type file struct {
	name    string
	mode    int64
	content []byte
}

// epoch is when all files of a package were changed. Zip files know no time before 1980,
// and npm gives its tarballs this one.
var epoch = time.Date(1985, 10, 26, 8, 15, 0, 0, time.UTC)

// tarball returns files as npm packs them.
func tarball(files ...file) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: "package/" + f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: epoch, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := z.Close()
	return out.Bytes(), err
}
