package guard

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A watchdog is a job object: the system ends its processes and their children when the
// last handle to it is closed, which happens when this process ends. A child that a
// command starts before the command is in the job stays outside of it.
type watchdog struct {
	job windows.Handle
}

func newWatchdog(func(*watchdog, error)) (*watchdog, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making a job object: %w", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("setting up a job object: %w", err), windows.CloseHandle(job))
	}
	return &watchdog{job: job}, nil
}

// settled puts a started process into the job.
func (w *watchdog) settled(_ uint64, pid int, started bool) error {
	if !started {
		return nil
	}
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return fmt.Errorf("opening process %d: %w", pid, err)
	}
	err = windows.AssignProcessToJobObject(w.job, p)
	return errors.Join(err, windows.CloseHandle(p))
}

// close ends the remaining processes of the job.
func (w *watchdog) close() { _ = windows.CloseHandle(w.job) } // the only handle

// The other methods are for the watchdog process of Unix.

func (w *watchdog) starting(uint64, string) error { return nil }
func (w *watchdog) ended(int) error               { return nil }
func (w *watchdog) inherit(*watchdog) error       { return nil }
func (w *watchdog) lasted() bool                  { return false }
func (w *watchdog) abandon()                      {}

func inode(*os.File) uint64 { return 0 }
