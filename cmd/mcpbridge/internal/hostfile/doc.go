// Package hostfile changes the configuration files of hosts, and keeps a copy beside each that is
// the file without mcpbridge.
package hostfile
