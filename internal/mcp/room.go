package mcp

import "github.com/mcpbridge/mcpbridge/internal/budget"

// perByte is how many bytes of memory one byte of a message needs: one for the message
// itself, and one for its translation.
const perByte = 2

// A Memory is a bounded memory that is divided among shares. Safe for concurrent use.
type Memory interface {
	// Account returns the account of a share.
	Account(Share) *budget.Account
	// Refuse counts and logs that there was no memory, and returns the error for the
	// client.
	Refuse() error
}

// Take returns a room with memory for n bytes of messages, or an error for the client. If
// m is nil, the room is unbounded.
func Take(m Memory, s Share, n int) (Room, error) {
	r := NewRoom(m, s)
	return r, r.Grow(n)
}

// A Room is memory that was taken for one purpose. It can grow and shrink. No method
// waits for memory. The zero value is unbounded. A Room is not safe for concurrent use.
type Room struct {
	memory  Memory // nil: unbounded
	share   Share
	account *budget.Account // nil while the room is empty
	taken   int64
}

// NewRoom returns an empty room for a share of a memory, which may be nil.
func NewRoom(m Memory, s Share) Room { return Room{memory: m, share: s} }

// Grow takes memory for n more bytes of messages. If there is none, it returns an error
// for the client.
func (r *Room) Grow(n int) error {
	if r.TryGrow(n) {
		return nil
	}
	return r.Refuse()
}

// TryGrow is Grow for callers that hold a lock: if it reports false, nothing is counted
// or logged until the caller calls Refuse.
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

// Release gives back all memory. It may be called again.
func (r *Room) Release() { r.give(r.taken) }

func (r *Room) give(size int64) {
	if size = min(size, r.taken); size > 0 {
		r.taken -= size
		r.account.Give(size)
		r.forgetIfEmpty()
	}
}

// forgetIfEmpty drops the account of an empty room, because the budget may remove it.
func (r *Room) forgetIfEmpty() {
	if r.taken == 0 {
		r.account = nil
	}
}
