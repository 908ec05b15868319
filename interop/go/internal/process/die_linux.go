package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// start starts a command that the kernel kills when this process ends, however that is: a
// test that exceeds the -timeout of go test ends without its cleanups.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error, 1)
	starts() <- func() { done <- cmd.Start() }
	return <-done
}

// starts returns where starts are run: all by one thread, which ends with this process,
// since the signal is sent when the thread ends that has forked.
var starts = sync.OnceValue(func() chan<- func() {
	todo := make(chan func())
	go func() { // ends with the process
		runtime.LockOSThread()
		for do := range todo {
			do()
		}
	}()
	return todo
})
