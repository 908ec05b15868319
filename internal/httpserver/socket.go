package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// socketMode lets the user of the process alone connect.
const socketMode fs.FileMode = 0o600

// ListenSocket listens on a Unix socket that only the user of the process can connect to.
// One that another process has left behind is replaced; one that is in use, or a file
// that is no socket, is an error.
func ListenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	l, err := listenPrivately(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("keeping %s from other users: %w", path, err)
	}
	return l, nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listening on %s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("listening on %s: there is a file that is no socket; remove it, or choose another path", path)
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close() // it was only a question
		return fmt.Errorf("listening on %s: another process does", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("listening on %s: there is a socket, and who listens on it is unknown: %w", path, err)
	}
	return os.Remove(path)
}
