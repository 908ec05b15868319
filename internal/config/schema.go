package config

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A kind says how a key's value is read.
type kind int

const (
	text  kind = iota // a string
	flag              // true or false
	count             // a whole number
	size              // bytes, with an optional unit
	span              // a duration, unit required
	list              // of strings
	dict              // string to string, both chosen by the user
	group             // keys named in fields
	table             // names chosen by the user, each a group of fields
)

// A key describes one key of the configuration.
type key struct {
	kind kind
	def  any // the default, of the value's own type; nil for none
	// ofCommand is the default for a server with a command, where that is another.
	ofCommand any
	inherits  string   // the key at the top whose value is the default
	oneOf     []string // the values a text may have; empty for any
	min       int64    // least count, bytes or nanoseconds
	max       int64    // most; 0 for no bound
	fields    map[string]*key
	names     []string // of a table: the names it may use; empty for any
	same      string   // the key that this one is another spelling of
	// instead maps values that are understood and can't be served to what
	// to do about it.
	instead map[string]string
}

const (
	second = int64(time.Second)
	hour   = int64(time.Hour)
)

// schema is the table of every key. config.example.yaml documents it and a
// test holds the two together.
var schema = &key{kind: group, fields: map[string]*key{
	"listen":          {kind: text, def: "127.0.0.1:2526"},
	"admin":           {kind: text, def: "127.0.0.1:2527"},
	"allow_anonymous": {kind: flag, def: false},
	"allowed_origins": {kind: list},
	"allowed_hosts":   {kind: list},
	"trusted_proxies": {kind: list},
	"state_keys":      {kind: list},
	"debug_errors":    {kind: flag, def: false},
	"body_timeout":    {kind: span, def: 30 * time.Second, min: second / 10, max: hour},
	"write_timeout":   {kind: span, def: 10 * time.Second, min: second / 10, max: hour},
	"keep_alive":      {kind: span, def: 15 * time.Second, min: second / 10, max: hour},
	"client_idle":     {kind: span, def: 30 * time.Minute, min: second, max: 24 * hour},
	"drain":           {kind: span, def: 10 * time.Second, min: 0, max: hour},
	"remember":        {kind: flag, def: true},
	"limits": {kind: group, fields: map[string]*key{
		"memory":                {kind: size, def: int64(0), max: 1 << 44},
		"body":                  {kind: size, def: int64(4 << 20), min: 1 << 10, max: 1 << 30},
		"depth":                 {kind: count, def: int64(128), min: 8, max: 10_000},
		"id":                    {kind: size, def: int64(1 << 10), min: 64, max: 1 << 20},
		"progress_token":        {kind: size, def: int64(1 << 10), min: 64, max: 1 << 20},
		"method":                {kind: size, def: int64(1 << 10), min: 64, max: 1 << 20},
		"uri":                   {kind: size, def: int64(8 << 10), min: 256, max: 1 << 24},
		"filter":                {kind: size, def: int64(256 << 10), min: 256, max: 1 << 28},
		"client_info":           {kind: size, def: int64(64 << 10), min: 256, max: 1 << 24},
		"capabilities":          {kind: size, def: int64(16 << 10), min: 256, max: 1 << 24},
		"requests":              {kind: count, def: int64(20_000), min: 1, max: 1_000_000},
		"requests_each":         {kind: count, def: int64(10_000), min: 1, max: 1_000_000},
		"upstream_message":      {kind: size, def: int64(64 << 20), min: 1 << 10, max: 1 << 30},
		"sessions":              {kind: count, def: int64(1000), min: 1, max: 1_000_000},
		"command_sessions":      {kind: count, def: int64(64), min: 1, max: 100_000},
		"command_sessions_each": {kind: count, def: int64(16), min: 1, max: 100_000},
		"client_sessions":       {kind: count, def: int64(10_000), min: 1, max: 1_000_000},
		"client_sessions_each":  {kind: count, def: int64(5_000), min: 1, max: 1_000_000},
		"client_events":         {kind: size, def: int64(256 << 10), min: 1 << 10, max: 1 << 30},
		"websockets":            {kind: count, def: int64(10_000), min: 1, max: 1_000_000},
		"websockets_each":       {kind: count, def: int64(5_000), min: 1, max: 1_000_000},
		"streams":               {kind: count, def: int64(20_000), min: 1, max: 1_000_000},
		"listen_topics":         {kind: count, def: int64(1024), min: 1, max: 1_000_000},
		"subscribes_each":       {kind: count, def: int64(200), min: 1, max: 1_000_000},
		"parked":                {kind: count, def: int64(10_000), min: 1, max: 1_000_000},
		"parked_each":           {kind: count, def: int64(5_000), min: 1, max: 1_000_000},
		"cache":                 {kind: size, def: int64(64 << 20), min: 64 << 10, max: 1 << 34},
		"cache_entries":         {kind: count, def: int64(10_000), min: 1, max: 1_000_000},
	}},
	"log": {kind: group, fields: map[string]*key{
		"level":  {kind: text, def: "info", oneOf: []string{"debug", "info", "warn", "error"}},
		"format": {kind: text, def: "auto", oneOf: []string{"auto", "text", "json"}},
	}},
	"servers":    {kind: table, fields: serverFields},
	"mcpServers": {kind: table, fields: serverFields, same: "servers"},
}}

var serverFields = map[string]*key{
	"disabled":  {kind: flag, def: false},
	"builtin":   {kind: text, oneOf: []string{"notebook", "modern-notebook"}},
	"command":   {kind: text},
	"args":      {kind: list},
	"env":       {kind: dict},
	"env_file":  {kind: text},
	"envFile":   {kind: text, same: "env_file"},
	"cwd":       {kind: text},
	"remember":  {kind: flag, inherits: "remember"},
	"url":       {kind: text},
	"serverUrl": {kind: text, same: "url"},
	"baseUrl":   {kind: text, same: "url"},
	"headers":   {kind: dict},
	"type": {
		kind: text, oneOf: []string{"stdio", "http", "streamable-http", "streamableHttp", "sse", "ws"},
	},
	"era":          {kind: text, def: "auto", oneOf: []string{"auto", "legacy", "modern"}},
	"isolation":    {kind: text, def: "principal", oneOf: []string{"principal", "shared", "request"}},
	"log_level":    {kind: text, def: "none", oneOf: []string{"none", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}},
	"experimental": {kind: flag, def: false},
	"extensions": {kind: group, fields: map[string]*key{
		"hide": {kind: list},
	}},
	"tasks":        {kind: text, def: "on", oneOf: []string{"on", "off"}},
	"client_info":  {kind: text, def: "gateway", oneOf: []string{"gateway", "client"}},
	"subresources": {kind: text, def: "parent", oneOf: []string{"parent", "as-sent", "off"}},
	"lanes": {kind: group, fields: map[string]*key{
		"stdio": {kind: count, def: int64(1), min: 1, max: 1000},
		"http":  {kind: count, def: int64(4), min: 1, max: 1000},
	}},
	"gather":     {kind: span, def: 20 * time.Millisecond, min: second / 1000, max: 10 * second},
	"parked_ttl": {kind: span, def: 10 * time.Minute, min: second, max: 24 * hour},
	"roots":      {kind: list},
	"idle":       {kind: span, def: 5 * time.Minute, min: second, max: 24 * hour},
	"linger":     {kind: span, def: 2 * time.Second, min: second / 1000, max: hour},
	"synthesize": {kind: group, fields: map[string]*key{
		"tools":     {kind: span, def: time.Duration(0), min: 0, max: 24 * hour},
		"prompts":   {kind: span, def: time.Duration(0), min: 0, max: 24 * hour},
		"resources": {kind: span, def: time.Duration(0), min: 0, max: 24 * hour},
		"updates":   {kind: span, def: time.Duration(0), min: 0, max: 24 * hour},
	}},
	"timeouts": {kind: group, fields: map[string]*key{
		// Fetching a package and starting it takes what it takes; clients wait as long.
		"connect": {kind: span, def: 10 * time.Second, ofCommand: 60 * time.Second, min: second / 10, max: hour},
		"request": {kind: span, def: 60 * time.Second, min: second / 10, max: 24 * hour},
		"max":     {kind: span, def: 30 * time.Minute, min: second / 10, max: 24 * hour},
	}},
	// The six methods whose results carry cache hints.
	// Spec: 2026-07-28, schema, CacheableResult.
	"cache": {kind: table, names: []string{
		spec.MethodDiscover, spec.MethodToolsList, spec.MethodPromptsList,
		spec.MethodResourcesList, spec.MethodResourcesTemplates, spec.MethodResourcesRead,
	}, fields: map[string]*key{
		"ttl":   {kind: span, def: time.Duration(0), min: 0, max: 365 * 24 * hour},
		"scope": {kind: text, def: "private", oneOf: []string{"private", "public"}},
		"keep":  {kind: flag}, // the default depends on the rest: see Server.Kept
	}},
}

// foreign names keys of desktop clients' files that mean nothing to a
// gateway. Users copy them into files of ours, so these warn where others are errors.
var foreign = []string{
	"$schema", "alwaysAllow", "autoApprove", "chat", "description", "dev", "disabledTools", "excludeTools", "gallery",
	"globalShortcut", "icon", "includeTools", "inputs", "preferences", "trust", "version", "watchPaths",
}

// instead maps keys of desktop clients' servers to what says the same in a file of
// ours. In a client's own file they are read as they are.
var instead = map[string]string{
	"httpUrl":       "url, and type: http",
	"transportType": "type",
	"enabled":       "disabled",
	"headersHelper": "headers",
	"oauth":         "a token below headers, as Authorization",
	"auth":          "a token below headers, as Authorization",
}

// serverKeys are keys that belong to a server; found at the top level they
// deserve a better word than "unknown".
func serverKeys() []string { return keysOf(serverFields) }

func keysOf(fields map[string]*key) []string { return slices.Sorted(maps.Keys(fields)) }

// A setting is what was given, without defaults, where a key stands: what its default
// may depend on.
type setting struct {
	top   map[string]any // all that was given
	entry map[string]any // of a server, or of a table below it; nil elsewhere
}

// defaults returns the values that fields have in s when nobody sets them.
func defaults(fields map[string]*key, s setting) map[string]any {
	out := make(map[string]any)
	for name, k := range fields {
		if k.kind == group {
			out[name] = defaults(k.fields, s)
		} else if v := k.defaultIn(s); v != nil {
			out[name] = v
		}
	}
	return out
}

// defaultIn returns the value that k has in s when nobody sets it, nil for none.
func (k *key) defaultIn(s setting) any {
	command, _ := s.entry["command"].(string)
	switch {
	case k.inherits != "":
		if v, given := s.top[k.inherits]; given {
			return v
		}
		return schema.fields[k.inherits].defaultIn(s)
	case k.ofCommand != nil && command != "":
		return k.ofCommand
	}
	return k.def
}
