package replicas

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// connections calls visit with the ports of each TCP connection of a process. It asks the
// sockets themselves: /proc/net/tcp has those of the whole machine, takes long to read if
// there are many, and may show one twice.
func connections(pid int, visit func(local, other int)) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	files, err := os.ReadDir(dir)
	for _, f := range files {
		to, err := os.Readlink(dir + f.Name()) // it may have been closed
		if err != nil || !strings.HasPrefix(to, "socket:") {
			continue
		}
		if local, other, ok := portsOf(process, f.Name()); ok {
			visit(local, other)
		}
	}
	return err
}

// portsOf returns the ports of a process's descriptor, if it is a connection.
func portsOf(process int, name string) (local, other int, ok bool) {
	n, err := strconv.Atoi(name)
	if err != nil {
		return 0, 0, false
	}
	fd, err := unix.PidfdGetfd(process, n, 0)
	if err != nil {
		return 0, 0, false // it has just been closed
	}
	defer unix.Close(fd)
	a, err := unix.Getsockname(fd)
	b, err2 := unix.Getpeername(fd)
	if err != nil || err2 != nil {
		return 0, 0, false
	}
	local, other = portIn(a), portIn(b)
	return local, other, local != 0 && other != 0
}

func portIn(a unix.Sockaddr) int {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return 0
}
