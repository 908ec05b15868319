// Package hostile shows, on mcpbridge as a process, that its memory stays within
// limits.memory while clients try to have it keep all they can, and that others are
// served meanwhile.
package hostile
