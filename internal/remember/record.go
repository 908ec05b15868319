package remember

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// format is the version of the files. It is part of every key, so that two versions of
// mcpbridge don't remove each other's records.
const format = 1

// A Record is the description of a server, and how to connect to it.
type Record struct {
	Era         spec.Era // legacy or modern
	Revisions   []spec.Revision
	Description *mcp.Description // nil if the server gave none
	Said        time.Time        // when the server responded; zero means when Keep is called

	// First is the method of the first request that the server accepts, initialize or
	// server/discover; empty if it accepts both.
	First string
}

// Diff returns the names of the parts in which is differs from was: "era", "revisions",
// "capabilities", "serverInfo", "instructions", "first". It ignores the time, white space
// and the order of members.
func Diff(was, is Record) []string {
	a, b := was.description(), is.description()
	var out []string
	for _, part := range []struct {
		name string
		same bool
	}{
		{"era", was.Era == is.Era},
		{"revisions", slices.Equal(was.Revisions, is.Revisions)},
		{"capabilities", sameJSON(a.Capabilities, b.Capabilities)},
		{"serverInfo", sameJSON(a.ServerInfo, b.ServerInfo)},
		{"instructions", sameJSON(a.Instructions, b.Instructions)},
		{"first", was.First == is.First},
	} {
		if !part.same {
			out = append(out, part.name)
		}
	}
	return out
}

func (r *Record) description() mcp.Description {
	if r.Description == nil {
		return mcp.Description{}
	}
	return *r.Description
}

func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(canonical(a), canonical(b)) }

// fresh reports whether r may be used at the time now. A record from the future was
// written with a wrong clock.
func (r *Record) fresh(now time.Time) bool {
	age := now.Sub(r.Said)
	return age >= 0 && age <= MaxAge
}

// file is the JSON form of a record.
type file struct {
	Format      int             `json:"format"`
	Key         string          `json:"key"` // a renamed file is not valid
	Said        time.Time       `json:"said"`
	Era         string          `json:"era"`
	Revisions   []spec.Revision `json:"revisions,omitempty"`
	First       string          `json:"first,omitempty"`
	Description *description    `json:"description,omitempty"`
}

type description struct {
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	ServerInfo   json.RawMessage `json:"serverInfo,omitempty"`
	Instructions json.RawMessage `json:"instructions,omitempty"`
	TTL          int64           `json:"ttlMs,omitempty"`
	Public       bool            `json:"public,omitempty"`
}

// encode returns the contents of the file of k, or an error if r is not valid.
func encode(k Key, r Record) ([]byte, error) {
	f := file{
		Format: format, Key: k.String(), Said: r.Said.UTC(), Era: r.Era.String(),
		Revisions: r.Revisions, First: r.First,
	}
	if d := r.Description; d != nil {
		f.Description = &description{d.Capabilities, d.ServerInfo, d.Instructions, d.Cache.TTL, d.Cache.Public}
	}
	if err := f.check(k); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // keep the server's JSON, except for white space
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	if out.Len() > maxFile {
		return nil, fmt.Errorf("a record of %d bytes is too long, at most %d are kept", out.Len(), maxFile)
	}
	return out.Bytes(), nil
}

// decode parses the contents of the file of k.
func decode(k Key, data []byte) (Record, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return Record{}, err
	}
	if err := f.check(k); err != nil {
		return Record{}, err
	}
	r := Record{Era: eras[f.Era], Revisions: f.Revisions, Said: f.Said, First: f.First}
	if d := f.Description; d != nil {
		r.Description = &mcp.Description{
			Capabilities: d.Capabilities, ServerInfo: d.ServerInfo, Instructions: d.Instructions,
			Cache: mcp.CacheHint{TTL: d.TTL, Public: d.Public},
		}
	}
	return r, nil
}

var eras = map[string]spec.Era{spec.Legacy.String(): spec.Legacy, spec.Modern.String(): spec.Modern}

// check returns an error if f is not a valid record of k.
func (f *file) check(k Key) error {
	switch d := f.Description; {
	case f.Format != format:
		return fmt.Errorf("it has format %d, not %d", f.Format, format)
	case f.Key != k.String():
		return errors.New("it is the record of another server")
	case eras[f.Era] == spec.Unknown:
		return fmt.Errorf("unknown era %q", f.Era)
	case d == nil:
		return nil
	case !begins(d.Capabilities, '{'):
		return errors.New("the capabilities are not an object")
	case d.ServerInfo != nil && !begins(d.ServerInfo, '{'):
		return errors.New("serverInfo is not an object")
	case d.Instructions != nil && !begins(d.Instructions, '"'):
		return errors.New("the instructions are not a string")
	}
	return nil
}

// begins reports whether the first character of raw is c, apart from white space. The
// encoder refuses raw if it is not JSON.
func begins(raw json.RawMessage, c byte) bool {
	text := bytes.TrimLeft(raw, " \t\r\n")
	return len(text) > 0 && text[0] == c
}
