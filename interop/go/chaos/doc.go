// Package chaos shows, on mcpbridge as a process, that calls which wait for
// their clients cost the others nothing, that no question reaches another client
// than its own call's, and that a server which dies, hangs and lies leaves
// nothing unanswered, done twice or behind. It knows mcpbridge by its wire and
// its counters alone.
package chaos
