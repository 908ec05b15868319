package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dist := flag.String("dist", "dist", "the folder of goreleaser, which has artifacts.json and metadata.json")
	from := flag.String("root", ".", "the root of the repository, which has LICENSE and packaging")
	flag.Parse()
	if err := run(*dist, *from); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// A release is what packages are made of.
type release struct {
	version  string              // as in 1.2.3, without v
	binaries map[platform][]byte // by platform
	license  []byte
	launcher []byte // mcpbridge.js
	npm, pip []byte // the README of each
}

// run writes the packages of all binaries that a folder of goreleaser has.
func run(dist, root string) error {
	r, err := read(dist, root)
	if err != nil {
		return err
	}
	npm, err := r.npmPackages()
	if err != nil {
		return err
	}
	wheels, err := r.wheels()
	if err != nil {
		return err
	}
	return errors.Join(write(filepath.Join(dist, "npm"), npm), write(filepath.Join(dist, "wheels"), wheels))
}

// write replaces a folder by one with these files.
func write(dir string, files map[string][]byte) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
		fmt.Println(filepath.Join(dir, name))
	}
	return nil
}

// read reads what goreleaser has built, and what stands in the repository.
func read(dist, root string) (*release, error) {
	var metadata struct{ Version string }
	var artifacts []struct{ Type, Goos, Goarch, Path string }
	err := errors.Join(readJSON(filepath.Join(dist, "metadata.json"), &metadata), readJSON(filepath.Join(dist, "artifacts.json"), &artifacts))
	if err != nil {
		return nil, err
	}
	r := &release{version: metadata.Version, binaries: make(map[platform][]byte)}
	for from, to := range map[string]*[]byte{
		"LICENSE": &r.license, "packaging/npm/mcpbridge.js": &r.launcher,
		"packaging/npm/README.md": &r.npm, "packaging/wheel/README.md": &r.pip,
	} {
		if *to, err = os.ReadFile(filepath.Join(root, from)); err != nil {
			return nil, err
		}
	}
	for _, a := range artifacts {
		if a.Type != "Binary" {
			continue
		}
		if !filepath.IsAbs(a.Path) {
			a.Path = filepath.Join(root, a.Path)
		}
		if err := r.add(a.Goos, a.Goarch, a.Path); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func readJSON(path string, to any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	return err
}
