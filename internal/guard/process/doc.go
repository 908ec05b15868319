// Package process is the watchdog process, which outlives mcpbridge briefly: it ends the
// process groups that mcpbridge has started and could not end because it was killed.
// Package guard starts it.
//
// It is the same program: a program that imports this package becomes the watchdog if
// [Word] is its only argument. That is decided during the initialization of packages,
// which happens in the order of their paths, because initializing the rest of the program
// would take several times the memory. For the same reason this package imports little,
// and no other package of mcpbridge.
package process
