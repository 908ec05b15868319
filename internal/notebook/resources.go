package notebook

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// pageSize is the number of resources per page.
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

// listResources lists the notes in order. A cursor is the last URI of a page, so that it
// stays valid when notes are added.
//
// Spec: 2025-11-25, server/utilities/pagination.
func (s *session) listResources(params []byte) (any, *wire.Error) {
	names := s.nb.names()
	if raw := wire.Get(params, "cursor"); raw != nil {
		after, ok := strings.CutPrefix(wire.Unquote(raw), uriPrefix)
		if !ok {
			return nil, wire.Errorf(spec.CodeInvalidParams, "unknown cursor %s", raw)
		}
		at, found := slices.BinarySearch(names, after)
		if found {
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

const noteTemplate = uriPrefix + "{name}"

var templates = json.RawMessage(`{"resourceTemplates":[{"uriTemplate":"` + noteTemplate + `","name":"note",` +
	`"description":"A note by its name.","mimeType":"text/plain"}]}`)

func (s *session) listTemplates(params []byte) (any, *wire.Error) { return onePage(params, templates) }

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

// notFound returns the error for a resource that does not exist.
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
