// Package output writes for people at a terminal and for programs that read what is
// printed, the log of the program included.
package output
