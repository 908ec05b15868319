package mcp

import "github.com/mcpbridge/mcpbridge/internal/budget"

// perByte is how many bytes of memory one byte of a message takes while it is served:
// itself, and what is made of it for the other side.
const perByte = 2

// A Memory is what shares may have kept. Safe for concurrent use.
type Memory interface {
	// Account returns the account of a share.
	Account(Share) *budget.Account
	// Refuse counts and logs that there was no memory to be had, and returns the error
	// for the client.
	Refuse() error
}

// Take returns a room of memory for n bytes of messages, or an error for the client.
// Without a memory nothing is bounded.
func Take(m Memory, s Share, n int) (Room, error) {
	r := NewRoom(m, s)
	return r, r.Grow(n)
}

// A Room is memory that was taken for one thing. It grows and shrinks with that, and
// nothing waits for it. The zero value has no bound. It is not safe for concurrent use.
type Room struct {
	memory  Memory // nil for no bound
	share   Share
	account *budget.Account // nil while nothing is taken
	taken   int64
}

// NewRoom returns an empty room for a share of a memory, which may be nil.
func NewRoom(m Memory, s Share) Room { return Room{memory: m, share: s} }

// Grow takes memory for n more bytes of messages. The error, for the client, says that
// there is none to be had.
func (r *Room) Grow(n int) error {
	if r.TryGrow(n) {
		return nil
	}
	return r.Refuse()
}

// TryGrow is Grow for who holds a lock: that it reports false is neither counted nor
// logged before Refuse is called.
func (r *Room) TryGrow(n int) bool {
	if r.memory == nil || n <= 0 {
		return true
	}
	if r.account == nil {
		r.account = r.memory.Account(r.share)
	}
	if !r.account.Take(perByte * int64(n)) {
		r.forgetIfEmpty()
		return false
	}
	r.taken += perByte * int64(n)
	return true
}

// Refuse reports that the room could not grow, and returns the error for the client.
func (r *Room) Refuse() error { return r.memory.Refuse() }

// Shrink gives back the memory of n bytes.
func (r *Room) Shrink(n int) { r.give(perByte * int64(n)) }

// Release gives everything back. It may be called again.
func (r *Room) Release() { r.give(r.taken) }

func (r *Room) give(size int64) {
	if size = min(size, r.taken); size > 0 {
		r.taken -= size
		r.account.Give(size)
		r.forgetIfEmpty()
	}
}

// forgetIfEmpty lets go of an account that may be forgotten itself.
func (r *Room) forgetIfEmpty() {
	if r.taken == 0 {
		r.account = nil
	}
}
