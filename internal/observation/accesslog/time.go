package accesslog

import (
	"sync/atomic"
	"time"
)

// seconds has the second of the last line as text, which most lines begin with that follow.
// Safe for concurrent use.
type seconds struct{ last atomic.Pointer[second] }

type second struct {
	unix       int64
	text, zone string
}

// append appends a time with milliseconds.
func (s *seconds) append(dst []byte, at time.Time) []byte {
	last := s.last.Load()
	if unix := at.Unix(); last == nil || last.unix != unix {
		last = &second{unix, at.Format("2006-01-02T15:04:05."), at.Format("Z07:00")}
		s.last.Store(last)
	}
	dst = appendDigits(append(dst, last.text...), at.Nanosecond()/1e6, 100)
	return append(dst, last.zone...)
}
