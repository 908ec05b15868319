// Package hostile shows, on mcpbridge as a process, that its memory stays within
// limits.memory while clients try to have it keep all they can, and that others are
// served meanwhile. Memory is what /proc says of the process. The attackers under
// load are a process of their own, so that the CPU time they take is known.
package hostile
