// Package steer answers one question: how does a test hold a client that is under
// remote control, a process that speaks as package remote says?
//
// It starts the process, has requests run, sorts what arrives into inboxes, and
// answers the server's questions as it was told to. It judges nothing.
package steer
