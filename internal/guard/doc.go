// Package guard ends the commands that mcpbridge has started even if mcpbridge is killed
// and can't end them itself.
//
// On Unix a watchdog does that: a second process of the same program (package process in
// this folder). It receives the id of every process group over a pipe. When mcpbridge
// ends, for whatever reason, the system closes the pipe. The watchdog then sends SIGTERM
// to every remaining group, and SIGKILL a moment later. A signal at the parent's death
// (PR_SET_PDEATHSIG) is no alternative: only Linux has it, it reaches only direct
// children, and it fires when the thread that forked ends. On Windows a job object ends
// the commands.
//
// If mcpbridge were killed after it has forked a command and before it has reported it,
// the watchdog would not know the command. Therefore mcpbridge announces each start with
// the inode of the pipe that will be the command's standard input, and with what its
// environment alone has. On Linux the watchdog finds the processes that have this pipe open,
// or that in their environment: the command may have ended, with its input, and have left
// others.
//
// The package does not know what the commands are.
package guard
