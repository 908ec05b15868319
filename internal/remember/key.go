package remember

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A Server is a command and its client: everything on which the server's description may
// depend.
type Server struct {
	Command string
	Args    []string
	Env     []string // KEY=VALUE, as for the child; the last of several values counts
	Dir     string   // the working directory; empty means that of this process

	// Capabilities are the client's, a JSON object; nil for none.
	Capabilities json.RawMessage
	Principal    string // the client's principal
}

// A Key identifies the record of a server. It is a hash, so it does not reveal the
// server. The zero Key identifies no record.
type Key [sha256.Size]byte

// String returns the key in hexadecimal.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Key returns the key of s. It changes when the program's file changes. Key returns an
// error if the program is not found; starting it would fail, too.
func (s Server) Key() (Key, error) {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return Key{}, fmt.Errorf("finding the working directory: %w", err)
	}
	program, err := lookPath(s.Command, dir)
	if err != nil {
		return Key{}, err
	}
	info, err := os.Stat(program)
	if err != nil {
		return Key{}, err
	}
	h := hasher{sha256.New()}
	h.number(format)
	h.text(s.Command)
	h.list(s.Args)
	h.list(environment(s.Env))
	h.text(dir)
	h.text(program)
	h.number(info.Size())
	h.number(info.ModTime().UnixNano())
	h.text(string(canonical(s.capabilities())))
	h.text(s.Principal)
	return Key(h.Sum(nil)), nil
}

func (s Server) capabilities() json.RawMessage { return orNone(s.Capabilities) }

func orNone(capabilities json.RawMessage) json.RawMessage {
	if len(capabilities) == 0 {
		return json.RawMessage("{}")
	}
	return capabilities
}

// A Shape is a server as all replicas have it, and its client.
type Shape struct {
	Definition string // a digest of its configuration

	// Capabilities are the client's, a JSON object; nil for none.
	Capabilities json.RawMessage
	Principal    string // the client's principal
}

// Key returns the key of s.
func (s Shape) Key() Key {
	h := hasher{sha256.New()}
	h.number(format)
	h.text("shape")
	h.text(s.Definition)
	h.text(string(canonical(orNone(s.Capabilities))))
	h.text(s.Principal)
	return Key(h.Sum(nil))
}

// lookPath returns the file that os/exec runs for command in dir. It looks up a bare name
// in the PATH of this process, not of the child.
func lookPath(command, dir string) (string, error) {
	if filepath.Base(command) != command && !filepath.IsAbs(command) {
		command = filepath.Join(dir, command)
	}
	return exec.LookPath(command)
}

// environment returns env as the child sees it: each name once, sorted.
func environment(env []string) []string {
	last := make(map[string]string, len(env))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		last[name] = entry
	}
	return slices.Sorted(maps.Values(last))
}

// canonical returns raw with sorted members and without white space, for comparisons
// only. It returns invalid JSON unchanged.
func canonical(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a float64 would make different numbers equal
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// A hasher hashes a sequence of parts. It writes the length of each part first, so that
// different sequences have different hashes.
type hasher struct{ hash.Hash }

func (h hasher) number(n int64) {
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) // a hash returns no error
}

func (h hasher) text(s string) {
	h.number(int64(len(s)))
	_, _ = h.Write([]byte(s))
}

func (h hasher) list(items []string) {
	h.number(int64(len(items)))
	for _, item := range items {
		h.text(item)
	}
}
