// Package process is the process that outlives mcpbridge by a moment: it ends the
// process groups that mcpbridge has started and could not end itself, because it was
// killed. See internal/guard, which starts it.
//
// It is the same program. A package that imports this one becomes it when the program is
// called with [Word] alone: that is decided while packages are initialised, in the order
// of their paths, since most of what the rest of the program brings along would make it
// several times larger. So this package imports next to nothing, and nothing of ours.
package process
