package pin

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

const (
	// maxFile limits what is kept of one server, in bytes, maxTools its tools, and maxForms the
	// accepted definitions of one tool: servers may send clients of another revision a
	// different definition.
	maxFile  = 64 << 20
	maxTools = 10_000
	maxForms = 8
	// maxShared limits what replicas share of one server, in bytes, compressed.
	maxShared = 500 << 10

	// forms is the form of which digests are: 1 is what the server said, and 0, which had no
	// number, either that or what a client was shown of it.
	forms = 1
)

// A File is what is kept of one server.
type File struct {
	Server string `json:"server"`
	Forms  int    `json:"forms,omitempty"`
	// Complete says that there was a complete list: a tool that is not in the file is new.
	Complete bool            `json:"complete"`
	Tools    map[string]Tool `json:"tools"`
}

// A Tool is what is kept of one tool.
type Tool struct {
	// Digests are those of the accepted definitions, the latest last. Older are those among
	// them that may be of what was shown of the definition.
	Digests []string `json:"digests"`
	Older   []string `json:"older,omitempty"`
	// Definition is the latest accepted one; nil if there was no room for it.
	Definition json.RawMessage `json:"definition,omitempty"`
	Accepted   time.Time       `json:"accepted"`
}

// newFile returns what is kept of a server of which nothing is known.
func newFile(server string) *File { return &File{Server: server, Forms: forms} }

// read returns the File that a text is.
func read(server string, text []byte) (*File, error) {
	f := new(File)
	if err := json.Unmarshal(text, f); err != nil {
		return nil, err
	}
	if f.Server != server {
		return nil, fmt.Errorf("it is that of server %q; remove it to begin anew", f.Server)
	}
	if f.Forms < forms {
		for name, t := range f.Tools {
			t.Older = slices.Clone(t.Digests)
			f.Tools[name] = t
		}
		f.Forms = forms
	}
	return f, nil
}

// accept adds a definition. With it, one that was shown for it is accepted no more.
func (f *File) accept(name string, m form) {
	if f.Tools == nil {
		f.Tools = make(map[string]Tool)
	}
	t := f.Tools[name]
	older := ""
	if len(t.Older) > 0 {
		older = m.digests().older
	}
	t.Digests = append(slices.DeleteFunc(slices.Clone(t.Digests), func(d string) bool { return d == m.said || d == older }), m.said)
	if len(t.Digests) > maxForms {
		t.Digests = t.Digests[len(t.Digests)-maxForms:]
	}
	t.Older = slices.DeleteFunc(slices.Clone(t.Older), func(d string) bool { return d == m.said || !slices.Contains(t.Digests, d) })
	t.Definition, t.Accepted = slices.Clone(m.definition), time.Now().UTC().Truncate(time.Second)
	f.Tools[name] = t
}

// with returns a File in which more tools are accepted.
func (f *File) with(more []found, complete bool) *File {
	out := *f
	out.Forms, out.Complete, out.Tools = forms, complete, maps.Clone(f.Tools)
	for _, m := range more {
		if len(out.Tools) < maxTools {
			out.accept(m.name, m.form)
		}
	}
	return &out
}

var errTooLarge = errors.New("it is too large for an engine: over 500 KiB, compressed and without the definitions")

// pack returns the File for an engine: without definitions, which only people need, if there
// is no room for them.
func (f *File) pack() ([]byte, error) {
	for _, whole := range []bool{true, false} {
		out := *f
		if !whole {
			out.Tools = make(map[string]Tool, len(f.Tools))
			for name, t := range f.Tools {
				t.Definition = nil
				out.Tools[name] = t
			}
		}
		var data bytes.Buffer
		w := gzip.NewWriter(&data)
		if err := errors.Join(json.NewEncoder(w).Encode(out), w.Close()); err != nil {
			return nil, err
		}
		if data.Len() <= maxShared {
			return data.Bytes(), nil
		}
	}
	return nil, errTooLarge
}

// unpack returns the File that pack has packed.
func unpack(server string, data []byte) (*File, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it is over %d bytes", maxFile)
	}
	if err != nil {
		return nil, err
	}
	return read(server, text)
}
