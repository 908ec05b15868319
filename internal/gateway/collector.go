package gateway

// ballastSize is how many bytes of garbage a process with little live data may
// gather before they are collected. A gateway that holds a few megabytes would
// otherwise collect hundreds of times a second, and empty its pools of buffers each
// time.
const ballastSize = 64 << 20

// A Ballast is memory that a process keeps and never touches, so that it takes no
// room: the collector, which lets garbage grow with what is live, counts it.
type Ballast struct {
	untouched []byte
}

// NewBallast returns a Ballast, which works as long as it is referred to. It is for
// main packages, and for processes whose user has not set GOGC or GOMEMLIMIT:
// a percentage would cost a gateway of many streams as much as it gives a small one.
//
// memory is what the process aims at, in bytes: a ballast takes at most an eighth of it.
func NewBallast(memory int64) *Ballast { return &Ballast{make([]byte, min(ballastSize, memory/8))} }
