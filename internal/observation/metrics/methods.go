package metrics

import "github.com/mcpbridge/mcpbridge/internal/spec"

// Other stands for every method that the specification does not name.
const Other = "other"

// bounded returns method if the specification names it. A client that invents
// methods would otherwise make a time series with each of them, and each is
// kept for the life of the process (CWE-770).
func bounded(method string) string {
	if spec.Defined(method) {
		return method
	}
	return Other
}
