package notebook

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// pageSize is how many resources a list names at a time.
const pageSize = 50

type resourcesResult struct {
	Resources  []resource `json:"resources"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

type resource struct {
	URI      string `json:"uri"`
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
}

// listResources lists the notes in order. A cursor is the last URI of a page,
// so that it survives notes being added.
//
// Spec: 2025-11-25, server/utilities/pagination.
func (s *session) listResources(params []byte) (any, *wire.Error) {
	names := s.nb.names()
	if raw := wire.Get(params, "cursor"); raw != nil {
		after, ok := strings.CutPrefix(wire.Unquote(raw), uriPrefix)
		if !ok {
			return nil, wire.Errorf(spec.CodeInvalidParams, "unknown cursor %s", raw)
		}
		at, there := slices.BinarySearch(names, after)
		if there {
			at++
		}
		names = names[at:]
	}
	result := resourcesResult{Resources: []resource{}}
	for _, name := range names[:min(len(names), pageSize)] {
		result.Resources = append(result.Resources, resource{uriPrefix + name, name, "text/plain"})
	}
	if len(names) > pageSize {
		result.NextCursor = uriPrefix + names[pageSize-1]
	}
	return result, nil
}

type templatesResult struct {
	ResourceTemplates []template `json:"resourceTemplates"`
}

type template struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`
}

var noteTemplate = template{uriPrefix + "{name}", "note", "A note by its name.", "text/plain"}

func (s *session) listTemplates(params []byte) (any, *wire.Error) {
	if err := refuseCursor(params); err != nil {
		return nil, err
	}
	return templatesResult{[]template{noteTemplate}}, nil
}

type readResult struct {
	Contents []contents `json:"contents"`
}

type contents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType"`
	Text     string `json:"text"`
}

func (s *session) readResource(params []byte) (any, *wire.Error) {
	uri, ok := wire.GetString(params, "uri")
	if !ok {
		return nil, missing("uri")
	}
	if name, ok := strings.CutPrefix(uri, uriPrefix); ok {
		if body, ok := s.nb.read(name); ok {
			return readResult{[]contents{{uri, "text/plain", body}}}, nil
		}
	}
	return nil, notFound(uri)
}

// subscribe takes any note's URI, also of one that is yet to be written. URIs
// are compared as they stand.
func (s *session) subscribe(params []byte) (any, *wire.Error) {
	uri, ok := wire.GetString(params, "uri")
	switch {
	case !ok:
		return nil, missing("uri")
	case checkNote(strings.TrimPrefix(uri, uriPrefix), "") != nil || !strings.HasPrefix(uri, uriPrefix):
		return nil, notFound(uri)
	case !s.nb.subscribe(&s.ear, uri):
		return nil, wire.Errorf(spec.CodeInternal, "a session has at most %d subscriptions", maxSubscriptions)
	}
	return none{}, nil
}

func (s *session) unsubscribe(params []byte) (any, *wire.Error) {
	uri, ok := wire.GetString(params, "uri")
	if !ok {
		return nil, missing("uri")
	}
	s.nb.unsubscribe(&s.ear, uri)
	return none{}, nil
}

// notFound is the answer for a resource that does not exist.
//
// Spec: 2025-11-25, server/resources, Error Handling.
func notFound(uri string) *wire.Error {
	err := wire.Errorf(spec.CodeResourceNotFound, "resource not found")
	err.Data, _ = json.Marshal(resourceError{uri}) // a string always encodes
	return err
}

type resourceError struct {
	URI string `json:"uri"`
}
