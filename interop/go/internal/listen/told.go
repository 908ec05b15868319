package listen

// IsAcked reports whether the acknowledgment has come.
func (s *Stream) IsAcked() bool {
	select {
	case <-s.Acked:
		return true
	default:
		return false
	}
}

// Ack returns what was acknowledged, and when; 0 if nothing was yet.
func (s *Stream) Ack() (Filter, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ack, s.ackAt
}

// EndAt returns when the stream ended; 0 if it has not.
func (s *Stream) EndAt() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endAt
}

// Frames returns what the stream was told so far. It is read-only.
func (s *Stream) Frames() []Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames[:len(s.frames):len(s.frames)]
}

// since returns the frames at or after a time.
func (s *Stream) since(at int64) []Frame {
	all := s.Frames()
	n := len(all)
	for n > 0 && all[n-1].At >= at {
		n--
	}
	return all[n:]
}

// First returns when the stream was first told of a topic at or after a time, 0 if never.
func (s *Stream) First(topic string, since int64) int64 {
	for _, f := range s.since(since) {
		if f.Topic == topic {
			return f.At
		}
	}
	return 0
}

// Told reports whether the stream was told of a topic at or after a time.
func (s *Stream) Told(topic string, since int64) bool { return s.First(topic, since) != 0 }

// Count returns how often the stream was told of a topic at or after a time.
func (s *Stream) Count(topic string, since int64) (n int) {
	for _, f := range s.since(since) {
		if f.Topic == topic {
			n++
		}
	}
	return n
}

// Untold returns the acknowledged topics that the stream was not told of since a time.
func (s *Stream) Untold(since int64) (topics []string) {
	ack, _ := s.Ack()
	for _, topic := range ack.Topics() {
		if !s.Told(topic, since) {
			topics = append(topics, topic)
		}
	}
	return topics
}
