//go:build unix

package httpserver

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// umask guards the process's umask while it is changed.
var umask sync.Mutex

// listenPrivately makes a socket that others can't connect to from the first moment on:
// between its making and a chmod there would be time to do so. Files that are made
// meanwhile elsewhere in the process get fewer permissions, never more.
func listenPrivately(ctx context.Context, path string) (net.Listener, error) {
	umask.Lock()
	defer umask.Unlock()
	defer syscall.Umask(syscall.Umask(0o177))
	return new(net.ListenConfig).Listen(ctx, "unix", path)
}
