package pin

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	folder = "pins"

	// maxFile limits the file of one server, in bytes, maxTools its tools, and maxForms the
	// accepted definitions of one tool: servers may send clients of another revision a
	// different definition.
	maxFile  = 64 << 20
	maxTools = 10_000
	maxForms = 8
)

// A File is what is stored for one server.
type File struct {
	Server string `json:"server"`
	// Complete says that there was a complete list: a tool that is not in the file is new.
	Complete bool            `json:"complete"`
	Tools    map[string]Tool `json:"tools"`
}

// A Tool is what is stored for one tool.
type Tool struct {
	// Digests are those of the accepted definitions, the latest last.
	Digests []string `json:"digests"`
	// Definition is the latest accepted one.
	Definition json.RawMessage `json:"definition"`
	Accepted   time.Time       `json:"accepted"`
}

// accept adds a definition.
func (f *File) accept(name, digest string, definition []byte) {
	if f.Tools == nil {
		f.Tools = make(map[string]Tool)
	}
	t := f.Tools[name]
	t.Digests = append(slices.DeleteFunc(slices.Clone(t.Digests), func(d string) bool { return d == digest }), digest)
	if len(t.Digests) > maxForms {
		t.Digests = t.Digests[len(t.Digests)-maxForms:]
	}
	t.Definition, t.Accepted = slices.Clone(definition), time.Now().UTC().Truncate(time.Second)
	f.Tools[name] = t
}

// Read reads the file of a server in a state folder. It returns an empty File if there is
// none.
func Read(dir, server string) (*File, error) {
	f := &File{Server: server}
	path := fileOf(dir, server)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("it is over %d bytes; remove it to begin anew", maxFile)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err == nil {
		err = json.Unmarshal(data, f)
	}
	if err == nil && f.Server != server {
		err = fmt.Errorf("it is that of server %q; remove it to begin anew", f.Server)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pinned tools of server %q in %s: %w", server, path, err)
	}
	return f, nil
}

// Write replaces what is kept of the server.
func (f *File) Write(dir string) error {
	if err := f.write(dir); err != nil {
		return fmt.Errorf("storing the pinned tools of server %q: %w", f.Server, err)
	}
	return nil
}

func (f *File) write(dir string) error {
	data, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	path := fileOf(dir, f.Server)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary := path + "." + rand.Text()[:8]
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		_ = os.Remove(temporary) // err says more
		return err
	}
	return nil
}

// fileOf returns the path of a server's file. The server's name consists of letters,
// digits, '.', '_' and '-'.
func fileOf(dir, server string) string { return filepath.Join(dir, folder, server+".json") }

// stampOf returns a stamp that differs between versions of a server's file; zero if there
// is none.
func stampOf(dir, server string) (stamp time.Time) {
	if info, err := os.Stat(fileOf(dir, server)); err == nil {
		stamp = info.ModTime()
	}
	return stamp
}
