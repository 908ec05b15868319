// Package guard answers one question: who ends the commands that mcpbridge has started
// when mcpbridge is killed, and can't?
//
// On Unix a second process of the same program does (package process below this one). It
// is told of every process group over a pipe. The system closes the pipe with us,
// whatever we died of, and then every group that is left gets SIGTERM, and SIGKILL a
// moment later. A signal at the parent's death (PR_SET_PDEATHSIG) would not do: Linux
// alone has it, it reaches direct children alone, and it fires when the thread ends
// that has forked. On Windows a job object does it.
//
// A process that is killed between its fork and its report would leave a command that
// nobody knows of. So the start is announced, by the inode of the pipe that the command
// is to read from: nobody else holds it, and on Linux the guard finds who does.
//
// The package knows nothing of what the commands are.
package guard
