package transport

import (
	"bytes"
	"os"
	"strconv"
)

// maxFamily bounds how many processes Memory looks at.
const maxFamily = 64

// Memory returns the resident memory of a process with the processes that it has started,
// in bytes, and the number of these. Both are zero if the system does not tell.
func Memory(pid int) (size int64, children int) {
	page := int64(os.Getpagesize())
	family := []int{pid}
	for i := 0; i < len(family) && i < maxFamily; i++ {
		size += residentPages(family[i]) * page
		family = append(family, childrenOf(family[i])...)
	}
	return size, len(family) - 1
}

// residentPages reads the second number of statm.
func residentPages(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64) // zero if it is no number
	return pages
}

// childrenOf returns the processes that the first thread of a process has started: a
// server's other threads seldom start any.
func childrenOf(pid int) (children []int) {
	id := strconv.Itoa(pid)
	text, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if err != nil {
		return nil
	}
	for _, field := range bytes.Fields(text) {
		if child, err := strconv.Atoi(string(field)); err == nil {
			children = append(children, child)
		}
	}
	return children
}
