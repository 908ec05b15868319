package wake

// GrowStack has the goroutine's stack hold what a request needs, while there is little on it: it would
// grow two or three times on the way to the server, and be copied with all its frames.
//
//go:noinline
func GrowStack() {
	var room [requestStack]byte
	touch(&room)
}

// requestStack is what a request needs, in bytes, so that the stack has 16 KiB.
const requestStack = 14 << 10

//go:noinline
func touch(room *[requestStack]byte) { room[0] = 1 }
