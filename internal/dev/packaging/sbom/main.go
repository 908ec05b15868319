// Command sbom writes the software bill of materials of a Go binary, in the format of
// CycloneDX, from the build information in the binary: exactly the modules that are in it.
//
//	go run ./internal/dev/packaging/sbom -version v1.2.3 BINARY FILE
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

func main() {
	version := flag.String("version", "", "the version of the binary, where it is not in the build information")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "sbom: want a binary, and the file to write")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *version); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(binary, to, version string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", binary, err)
	}
	if version != "" {
		info.Main.Version = version
	}
	text, err := json.MarshalIndent(newBOM(info, filepath.Base(binary), sha256.Sum256(content)), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}

// A bom is a bill of materials.
//
// Spec: CycloneDX 1.6, JSON.
type bom struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

// metadata has no time: the same binary gives the same document.
type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License licenseID `json:"license"`
}

type licenseID struct {
	ID string `json:"id"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// newBOM describes a binary by its build information, name and digest.
func newBOM(info *debug.BuildInfo, name string, sum [sha256.Size]byte) *bom {
	program := module(&info.Main)
	program.Type = "application"
	program.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}
	program.Licenses = []license{{licenseID{"Apache-2.0"}}}
	program.Properties = append(program.Properties, property{"go:file", name})
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" || s.Key == "vcs.revision" {
			program.Properties = append(program.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	// The version of the compiler is that of the standard library.
	std := module(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	b := &bom{Format: "CycloneDX", SpecVersion: "1.6", SerialNumber: serial(sum), Version: 1, Components: []component{std}}
	for _, m := range info.Deps {
		b.Components = append(b.Components, module(m))
	}
	needs := dependency{Ref: program.Ref}
	for _, c := range b.Components {
		needs.DependsOn = append(needs.DependsOn, c.Ref)
	}
	b.Metadata.Component, b.Dependencies = program, []dependency{needs}
	return b
}

// module describes a module that was built, which may replace another one.
func module(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	purl := "pkg:golang/" + m.Path + "@" + url.QueryEscape(m.Version)
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}} // of the module's files, as in go.sum
	}
	return c
}

// serial makes a UUID of a digest.
func serial(sum [sha256.Size]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // version 8, for what applications define
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
