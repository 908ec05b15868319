// Package detect finds out which era a server speaks.
//
// A [Detector] takes the place of the back of a server whose era is not configured. It
// probes the server, opens the back of the server's era, passes requests to it, and
// replaces it if the server turns out to be of the other era.
//
// The package knows neither era: functions in [Options] probe a server and open its back.
package detect
