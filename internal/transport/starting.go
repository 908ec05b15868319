package transport

import (
	"errors"
	"io/fs"
	"os/exec"
)

// NotStarted reports whether err means that a command could not be started.
func NotStarted(err error) bool {
	var start *fs.PathError
	return errors.As(err, new(*exec.Error)) || errors.As(err, &start) && (start.Op == "fork/exec" || start.Op == "chdir")
}
