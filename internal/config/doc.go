// Package config answers one question: what did the user ask for, and if it
// can't be done, what exactly should they change?
//
// Four layers make a [Config]: defaults, the file, the environment
// (MCPBRIDGE_…, levels separated by two underscores) and flags; a later layer
// wins. Each layer passes through the same strict check against one tree of
// keys, so that a value is refused in the same words wherever it came from. The tree is
// derived from [Config]: its fields' types and tags say every key's name, kind, default,
// range and meaning; package limits says it of the keys below limits. All mistakes are
// reported at once, each with the place it was made in.
//
// A Config is a snapshot: nothing changes it after [Load] has returned it.
//
// The package refuses to know what the values are for. It builds nothing,
// dials nothing and reads no environment but the one it is given.
package config
