package requeststate

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// A Task names a task that a server has, for a client that holds it.
type Task struct {
	ID      string    // the server's own
	Tool    string    // of the call that the task was made of
	Expires time.Time // whole seconds; zero if the server keeps the task for ever
}

// SealTask returns a name of a task for a client that binding describes. It is good as long as one of
// the keys, also in another instance.
func (s *Sealer) SealTask(t Task, binding string) string {
	var expires int64
	if !t.Expires.IsZero() {
		expires = t.Expires.Unix()
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(expires))
	plain = binary.AppendUvarint(plain, uint64(len(t.ID)))
	plain = append(append(plain, t.ID...), t.Tool...)
	prefix := version + "." + s.instance + "."
	sealed := s.keys.Load().seal[0].Seal(nil, nil, plain, taskData(prefix, binding))
	return prefix + base64.RawURLEncoding.EncodeToString(sealed)
}

// OpenTask returns the task of a name that SealTask has returned for the same binding with one of the
// keys. It does not check whether the task's time is up. The error is ErrOtherInstance if another
// instance seems to have sealed it, with a key that this one lacks, and ErrInvalid otherwise.
func (s *Sealer) OpenTask(text, binding string) (Task, error) {
	instance, body, sealed := split(text)
	if sealed == nil || len(instance) != len(s.instance) {
		return Task{}, ErrInvalid
	}
	ring := s.keys.Load()
	for _, key := range ring.seal {
		plain, err := key.Open(nil, nil, sealed, taskData(text[:len(text)-len(body)], binding))
		if err != nil || len(plain) < 8 {
			continue
		}
		if n, size := binary.Uvarint(plain[8:]); size > 0 && n <= uint64(len(plain)-8-size) {
			t := Task{ID: string(plain[8+size:][:n]), Tool: string(plain[8+size:][n:])}
			if at := int64(binary.BigEndian.Uint64(plain)); at != 0 {
				t.Expires = time.Unix(at, 0)
			}
			return t, nil
		}
	}
	if instance != s.instance && ring.random { // with keys of one's own, it is somebody else's
		return Task{}, ErrOtherInstance
	}
	return Task{}, ErrInvalid
}

// taskData returns what is bound to the name of a task. A requestState has no such data, so that
// neither opens as the other.
func taskData(prefix, binding string) []byte {
	whose := sha256.Sum256([]byte(binding))
	return append([]byte(prefix+"task\x00"), whose[:]...)
}
