package reload

import (
	"reflect"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Changed returns the keys whose values differ between two configurations, in order: names
// alone, since values may be secrets. A server that only one of them has is one key.
func Changed(was, is *config.Config) []string {
	keys := differing(nil, "", reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem())
	for i := range was.Servers {
		s := &was.Servers[i]
		next := find(is, s.Name)
		if next == nil {
			keys = append(keys, "servers."+s.Name)
			continue
		}
		keys = differing(keys, "servers."+s.Name+".", reflect.ValueOf(s).Elem(), reflect.ValueOf(next).Elem())
	}
	for i := range is.Servers {
		if name := is.Servers[i].Name; find(was, name) == nil {
			keys = append(keys, "servers."+name)
		}
	}
	slices.Sort(keys)
	return keys
}

// find returns the server of a name; nil if there is none.
func find(c *config.Config, name string) *config.Server {
	at := slices.IndexFunc(c.Servers, func(s config.Server) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &c.Servers[at]
}

// differing appends the keys below a prefix with different values.
func differing(keys []string, prefix string, was, is reflect.Value) []string {
	for i := range was.NumField() {
		f := was.Type().Field(i)
		name := f.Tag.Get("koanf")
		a, b := was.Field(i), is.Field(i)
		if f.Anonymous {
			keys = differing(keys, prefix, a, b)
			continue
		}
		if !f.IsExported() || name == "" || name == "-" || reflect.DeepEqual(a.Interface(), b.Interface()) {
			continue
		}
		if a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
			a, b = a.Elem(), b.Elem()
		}
		if a.Kind() == reflect.Struct {
			keys = differing(keys, prefix+name+".", a, b)
		} else {
			keys = append(keys, prefix+name)
		}
	}
	return keys
}
