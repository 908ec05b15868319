package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	koanfmaps "github.com/knadh/koanf/maps"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
)

// decodeServers adds the servers in the order of the file. Those that only the environment has
// are last, sorted by name.
func (cfg *Config) decodeServers(given *layer.Given, rep *key.Report) error {
	d := serverDecoder{top: given.Raw(), plain: make(map[bool]Server)}
	left := maps.Clone(given.Servers)
	cfg.Servers = slices.Grow(cfg.Servers, len(left))
	add := func(name string) error {
		entry, ok := left[name].(map[string]any)
		if !ok {
			return nil // refused, and reported
		}
		delete(left, name)
		s, err := d.decode(entry)
		if err != nil {
			return err
		}
		s.Name = name
		if strings.HasPrefix(s.Type, "streamable") {
			s.Type = "http"
		}
		s.NoteWritten(rep, key.Join("servers", name))
		cfg.Servers = append(cfg.Servers, s)
		return nil
	}
	for _, names := range [][]string{given.Order, slices.Sorted(maps.Keys(given.Servers))} {
		for _, name := range names {
			if err := add(name); err != nil {
				return err
			}
		}
	}
	cfg.places = placesOf(cfg.Servers)
	return nil
}

// placesOf returns where each server is, by its name.
func placesOf(servers []Server) map[string]int {
	places := make(map[string]int, len(servers))
	for i := range servers {
		places[servers[i].Name] = i
	}
	return places
}

// A serverDecoder decodes servers one by one. Most keys of most servers have their defaults, which
// servers of one kind have in common: a file can have 100,000 servers.
type serverDecoder struct {
	top map[string]any // all keys of the configuration that are set, servers aside
	// plain are the servers that have no more than their defaults, by whether they have a
	// command. They hold no maps, slices or pointers, so that copies share nothing.
	plain map[bool]Server
}

// decode returns the server that has the given keys.
func (d *serverDecoder) decode(given map[string]any) (Server, error) {
	command, _ := given["command"].(string)
	s, ok := d.plain[command != ""]
	if !ok {
		defaults := serverKey.EntryDefaults(schema, d.top, map[string]any{"command": command}, false)
		if err := decodeFields(&s, defaults); err != nil {
			return s, err
		}
		d.plain[command != ""] = s
	}
	if further := serverKey.EntryDefaults(schema, d.top, given, true); len(further) > 0 {
		koanfmaps.Merge(given, further)
		given = further
	}
	return s, decodeFields(&s, given)
}

// decodeFields sets the fields of a server that have values. Others stay as they are.
func decodeFields(s *Server, values map[string]any) error {
	v := reflect.ValueOf(s).Elem()
	for name, value := range values {
		field := v.FieldByIndex(serverKey.ByName[name].Index)
		if reflect.TypeOf(value) == field.Type() { // as of most
			field.Set(reflect.ValueOf(value))
			continue
		}
		d, err := mapstructure.NewDecoder(strict(field.Addr().Interface()))
		if err == nil {
			err = d.Decode(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
