package value

import (
	"maps"
	"net/url"
	"slices"
)

// Masked replaces a value that is not shown.
const Masked = "***"

// MaskedURL returns a URL whose query has no values, and which has no password.
func MaskedURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return Masked
	}
	query := u.RawQuery
	u.RawQuery, u.User = "", nil
	return u.String() + MaskedQuery(query)
}

// MaskedQuery hides the values of a URL's query, and an invalid query completely.
func MaskedQuery(raw string) string {
	if raw == "" {
		return ""
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return "?" + Masked
	}
	shown := ""
	for i, name := range slices.Sorted(maps.Keys(query)) {
		sep := "&"
		if i == 0 {
			sep = "?"
		}
		shown += sep + url.QueryEscape(name) + "=" + Masked
	}
	return shown
}
