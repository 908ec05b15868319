// Package linebuffer gathers the lines of a log, so that a busy program writes many of
// them with one system call. A line waits for a tenth of a second at most, and one that
// matters does not wait.
package linebuffer
