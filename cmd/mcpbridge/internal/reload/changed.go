package reload

import (
	"reflect"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Changed returns the keys whose values differ between two configurations, in order: names
// alone, since values may be secrets. A server or group that only one of them has is one key.
func Changed(was, is *config.Config) []string {
	keys := differing(nil, "", reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem())
	keys = differingIn(keys, "servers.", namesOf(was.Servers, serverName), was.Server, is.Server)
	keys = differingIn(keys, "servers.", namesOf(is.Servers, serverName), is.Server, was.Server)
	keys = differingIn(keys, "groups.", namesOf(was.Groups, groupName), was.Group, is.Group)
	keys = differingIn(keys, "groups.", namesOf(is.Groups, groupName), is.Group, was.Group)
	slices.Sort(keys)
	return slices.Compact(keys)
}

func serverName(s *config.Server) string { return s.Name }

func groupName(g *config.Group) string { return g.Name }

func namesOf[T any](all []T, name func(*T) string) (names []string) {
	for i := range all {
		names = append(names, name(&all[i]))
	}
	return names
}

// differingIn appends the keys of servers or groups, below a prefix, that differ in one
// configuration and another, or that the other has not.
func differingIn[T any](keys []string, prefix string, names []string, one, other func(string) *T) []string {
	for _, name := range names {
		if next := other(name); next != nil {
			keys = differing(keys, prefix+name+".", reflect.ValueOf(one(name)).Elem(), reflect.ValueOf(next).Elem())
		} else {
			keys = append(keys, prefix+name)
		}
	}
	return keys
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
