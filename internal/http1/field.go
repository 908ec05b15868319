package http1

import (
	"maps"
	"net/http"
)

// A Field is a field of a header. Its name is canonical.
type Field struct{ Name, Value string }

// Merged returns req with fields in place of those of the same names in its header: req
// itself if there are none, else a copy. It does not change the header of req.
func Merged(req *http.Request, fields []Field) *http.Request {
	if len(fields) == 0 {
		return req
	}
	header := make(http.Header, len(req.Header)+len(fields))
	maps.Copy(header, req.Header)
	for i, f := range fields {
		if isAmong(fields[:i], f.Name) {
			header[f.Name] = append(header[f.Name], f.Value)
		} else {
			header[f.Name] = []string{f.Value}
		}
	}
	req = req.WithContext(req.Context()) // a shallow copy
	req.Header = header
	return req
}

// isAmong reports whether one of fields has a name.
func isAmong(fields []Field, name string) bool {
	for i := range fields {
		if fields[i].Name == name {
			return true
		}
	}
	return false
}
