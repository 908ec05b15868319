// Package config reads the configuration, and reports each mistake with its place and what
// to write instead.
//
// A [Config] has four layers: defaults, the file, the environment (MCPBRIDGE_…, levels
// separated by two underscores) and flags. A later layer overrides the earlier ones. Each
// layer is checked against the same tree of keys, so that errors read the same in all of
// them. The tree is derived from [Config]: the types and tags of its fields give every key's
// name, kind, default, range and description; package limits gives those of the keys below
// limits. All mistakes are reported together.
//
// The packages below have the parts. In server, as here, the keys are fields of structs, and
// beside them is what checks their values. Package key derives the tree, makes the JSON Schema of
// it and collects the mistakes, layer reads files, the environment and flags against it, and
// value knows what values look like and refer to.
//
// Nothing changes a Config after [Load] has returned it.
//
// The package does not use the values: it opens no connections, and reads no environment
// except the one in [Options].
package config
