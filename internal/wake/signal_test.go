package wake

import "testing"

func TestSignal(t *testing.T) {
	isSet := func(s Signal) bool {
		select {
		case <-s:
			return true
		default:
			return false
		}
	}
	s := NewSignal()
	if isSet(s) {
		t.Error("a new signal is set")
	}
	s.Send()
	s.Send()
	if !isSet(s) {
		t.Error("it is not set after Send")
	}
	if isSet(s) {
		t.Error("it is set after it was received")
	}
	Signal(nil).Send() // does not block
}
