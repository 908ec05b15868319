// Package detect answers "which era does this server speak?", and keeps asking.
//
// A [Detector] stands in the place of the back of a server whose era nobody configured.
// It probes the server, opens the back of the era that was found, and replaces that back
// when the server turns out to speak the other era.
//
// The package knows neither era: how a server is probed, and what its back is, are
// functions in [Options].
package detect
