package remember

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A List is a list of a server, and its client.
type List struct {
	Definition string // a digest of the configuration of the server, and of what it shows
	Method     string

	// Capabilities are the client's, a JSON object; nil for none.
	Capabilities json.RawMessage
	Principal    string // the client's principal
}

// Key returns the key of l.
func (l List) Key() Key {
	h := hasher{sha256.New()}
	h.number(format)
	h.text("list")
	h.text(l.Definition)
	h.text(l.Method)
	h.text(string(canonical(orNone(l.Capabilities))))
	h.text(l.Principal)
	return Key(h.Sum(nil))
}

// listFile is the JSON form of a list.
type listFile struct {
	Format int             `json:"format"`
	Key    string          `json:"key"` // a renamed file is not valid
	Said   time.Time       `json:"said"`
	Items  json.RawMessage `json:"items"`
}

// encodeList returns the contents of the file of k, or an error if items are not valid.
func encodeList(k Key, items []byte, said time.Time) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // keep the server's JSON, except for white space
	if !begins(items, '[') {
		return nil, errors.New("the items are not an array")
	}
	if err := e.Encode(listFile{format, k.String(), said.UTC(), items}); err != nil {
		return nil, err
	}
	if out.Len() > maxFile {
		return nil, fmt.Errorf("a list of %d bytes is too long, at most %d are kept", out.Len(), maxFile)
	}
	return out.Bytes(), nil
}

// decodeList parses the contents of the file of k.
func decodeList(k Key, data []byte) (items []byte, said time.Time, err error) {
	var f listFile
	switch err := json.Unmarshal(data, &f); {
	case err != nil:
		return nil, said, err
	case f.Format != format:
		return nil, said, fmt.Errorf("it has format %d, not %d", f.Format, format)
	case f.Key != k.String():
		return nil, said, errors.New("it is another list")
	case !begins(f.Items, '['):
		return nil, said, errors.New("the items are not an array")
	}
	return f.Items, f.Said, nil
}

// LookupList returns the items of the list of k, a JSON array, unless they are older than
// [MaxAge].
func (s *Store) LookupList(k Key) ([]byte, bool) {
	if s == nil {
		return nil, false
	}
	var items []byte
	var said time.Time
	data, err := s.read(k)
	if err == nil {
		items, said, err = decodeList(k, data)
	}
	if err != nil {
		s.unread(k, err)
		return nil, false
	}
	if r := (Record{Said: said}); !r.fresh(time.Now()) {
		s.Forget(k)
		return nil, false
	}
	return items, true
}

// KeepList stores the items of the list of k, a JSON array, and replaces older ones. If they can't
// be stored, KeepList removes the older ones and returns an error.
func (s *Store) KeepList(k Key, items []byte) error {
	if s == nil {
		return nil
	}
	data, err := encodeList(k, items, time.Now())
	return s.put(k, data, err)
}

// Lists remembers the lists of servers that are members of groups. It is safe for concurrent use.
type Lists struct {
	// Store keeps the lists: a [*Store] or a [*Shared].
	Store interface {
		LookupList(k Key) ([]byte, bool)
		KeepList(k Key, items []byte) error
	}
	// Definition returns the Definition of a server's lists: another one if the server, or what
	// clients see of it, is configured otherwise. It returns "" for a server of which nothing is
	// to be remembered.
	Definition func(server string) string
	Logger     *slog.Logger // logs at debug level what can't be stored
}

// Recall returns the items that a server listed last for the sender of a request; nil if they are
// not remembered.
func (l *Lists) Recall(server string, req *mcp.Request, method string) []byte {
	k, ok := l.key(server, req, method)
	if !ok {
		return nil
	}
	items, _ := l.Store.LookupList(k)
	return items
}

// Remember stores the items that a server has listed for the sender of a request.
func (l *Lists) Remember(server string, req *mcp.Request, method string, items []byte) {
	k, ok := l.key(server, req, method)
	if !ok {
		return
	}
	if err := l.Store.KeepList(k, items); err != nil {
		l.Logger.Debug("remembering a list", "upstream", server, "method", method, "error", err)
	}
}

func (l *Lists) key(server string, req *mcp.Request, method string) (Key, bool) {
	definition := l.Definition(server)
	if definition == "" {
		return Key{}, false
	}
	return List{definition, method, req.Profile.Capabilities, string(req.Principal)}.Key(), true
}
