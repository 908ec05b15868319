// Package install writes mcpbridge into the configuration files of desktop clients, and takes it
// out again: as a whole, beside what the client writes itself, and with a copy of what was there.
package install
