package transport

import (
	"errors"
	"io/fs"
	"os/exec"
)

// NotStarted reports whether err means that a command could not be started.
func NotStarted(err error) bool {
	var missing *exec.Error
	var start *fs.PathError
	return errors.As(err, &missing) || errors.As(err, &start) && (start.Op == "fork/exec" || start.Op == "chdir")
}
