package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// wheels returns a wheel of each platform, by the names of their files. The binary is one
// of the scripts, which installers put where programs are, with the right to be run.
//
// Spec: packaging.python.org, Binary distribution format.
func (r *release) wheels() (map[string][]byte, error) {
	version, err := pythonVersion(r.version)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte)
	for p, binary := range r.binaries {
		content, err := r.wheel(&p, version, binary)
		if err != nil {
			return nil, err
		}
		out["mcpbridge-"+version+"-py3-none-"+p.tags+".whl"] = content
	}
	return out, nil
}

func (r *release) wheel(p *platform, version string, binary []byte) ([]byte, error) {
	info := "mcpbridge-" + version + ".dist-info/"
	files := []file{
		{"mcpbridge-" + version + ".data/scripts/" + p.file(), 0o755, binary},
		{info + "METADATA", 0o644, r.metadata(version)},
		{info + "WHEEL", 0o644, wheelFile(p)},
		{info + "licenses/LICENSE", 0o644, r.license},
	}
	files = append(files, file{info + "RECORD", 0o644, record(files, info+"RECORD")})
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: epoch}
		h.SetMode(fs.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

// metadata is the core metadata, with the README for PyPI's page.
func (r *release) metadata(version string) []byte {
	return fmt.Appendf(nil, `Metadata-Version: 2.4
Name: mcpbridge
Version: %s
Summary: %s
License-Expression: %s
License-File: LICENSE
Keywords: mcp,modelcontextprotocol,gateway,proxy
Requires-Python: >=3.8
Project-URL: Homepage, %s
Project-URL: Changelog, %[4]s/blob/main/CHANGELOG.md
Description-Content-Type: text/markdown

%[5]s`, version, summary, license, repository, r.pip)
}

// wheelFile says for whom the wheel is: a tag for each platform that its name joins.
func wheelFile(p *platform) []byte {
	var b strings.Builder
	b.WriteString("Wheel-Version: 1.0\nGenerator: mcpbridge\nRoot-Is-Purelib: false\n")
	for tag := range strings.SplitSeq(p.tags, ".") {
		fmt.Fprintf(&b, "Tag: py3-none-%s\n", tag)
	}
	return []byte(b.String())
}

// record lists all files with their digests and sizes, and itself.
func record(files []file, self string) []byte {
	var b bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.content)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
	}
	fmt.Fprintf(&b, "%s,,\n", self)
	return b.Bytes()
}

// semantic is a version of ours: a release, one before it, or a snapshot.
var semantic = regexp.MustCompile(`^(\d+\.\d+\.\d+)(?:-(alpha|beta|rc|dev)\.?(\d+))?$`)

// pythonVersion returns a version as Python spells it.
//
// Spec: packaging.python.org, Version specifiers.
func pythonVersion(version string) (string, error) {
	m := semantic.FindStringSubmatch(version)
	if m == nil {
		return "", fmt.Errorf("%q is no version that Python can spell; write one such as 1.2.3, 1.2.3-rc.1 or 1.2.3-dev.1", version)
	}
	before := map[string]string{"alpha": "a", "beta": "b", "rc": "rc", "dev": ".dev"}
	return m[1] + before[m[2]] + m[3], nil
}
