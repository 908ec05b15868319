package settings

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A CacheHint is the cache hint in the results of a method.
//
// Spec: 2026-07-28, schema, CacheableResult.
type CacheHint struct {
	TTL   time.Duration `koanf:"ttl" default:"0s" max:"8760h" doc:"how long a result may be cached"`
	Scope string        `koanf:"scope" default:"private" enum:"private public" doc:"public lets a cache share a result between users"`
	// Keep is nil for the default of the method: see kept.
	Keep *bool `koanf:"keep" doc:"whether the gateway also caches public results; the default is true for lists"`
}

// kept reports whether the gateway caches results of method. By default it caches lists
// only: a cached resource goes stale without notice unless a client subscribes to it.
// Discovery needs no cache, because the gateway answers it itself.
func (h CacheHint) kept(method string) bool {
	switch {
	case !h.Public() || h.TTL <= 0:
		return false
	case h.Keep == nil:
		return method != spec.MethodResourcesRead && method != spec.MethodDiscover
	}
	return *h.Keep
}

// Keepable reports whether the gateway can cache results of method.
func (h CacheHint) Keepable(method string) bool {
	return h.Public() && h.TTL > 0 && method != spec.MethodDiscover
}

// Public reports whether a cache may share a result between users.
func (h CacheHint) Public() bool { return h.Scope == spec.ScopePublic }

// Kept returns the methods whose results the gateway caches, in order.
func (s *Server) Kept() []string {
	var out []string
	for _, method := range slices.Sorted(maps.Keys(s.Cache)) {
		if s.Cache[method].kept(method) {
			out = append(out, method)
		}
	}
	return out
}
