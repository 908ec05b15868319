package guard

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A keeper is a job object: the system ends its processes, and theirs, when the last
// handle to it is closed, as it is when this process ends. A child that starts another
// before it is in the job does so outside of it.
type keeper struct {
	job windows.Handle
}

func newKeeper(func(*keeper, error)) (*keeper, error) {
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
	return &keeper{job: job}, nil
}

// settled puts a process that was started into the job.
func (k *keeper) settled(_ uint64, pid int, started bool) error {
	if !started {
		return nil
	}
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return fmt.Errorf("opening process %d: %w", pid, err)
	}
	err = windows.AssignProcessToJobObject(k.job, p)
	return errors.Join(err, windows.CloseHandle(p))
}

// close ends what is left in the job.
func (k *keeper) close() { _ = windows.CloseHandle(k.job) } // it is the only one

// The rest is for a keeper that is a process.

func (k *keeper) starting(uint64) error { return nil }
func (k *keeper) ended(int) error       { return nil }
func (k *keeper) inherit(*keeper) error { return nil }
func (k *keeper) lasted() bool          { return false }
func (k *keeper) abandon()              {}

func inode(*os.File) uint64 { return 0 }
