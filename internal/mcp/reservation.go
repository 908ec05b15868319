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

// Reserve reserves memory for n bytes of messages. If there is none, it returns an error for
// the client. If m is nil, the reservation is unbounded.
func Reserve(m Memory, s Share, n int) (Reservation, error) {
	r := NewReservation(m, s)
	return r, r.Grow(n)
}

// A Reservation is memory that is reserved for one purpose. It can grow and shrink. No method
// waits for memory. The zero value is unbounded. A Reservation is not safe for concurrent use.
type Reservation struct {
	memory  Memory // nil: unbounded
	share   Share
	account *budget.Account // nil while the reservation is empty
	taken   int64
}

// NewReservation returns an empty reservation for a share of a memory, which may be nil.
func NewReservation(m Memory, s Share) Reservation { return Reservation{memory: m, share: s} }

// Grow reserves memory for n more bytes of messages. If there is none, it returns an error
// for the client.
func (r *Reservation) Grow(n int) error {
	if r.TryGrow(n) {
		return nil
	}
	return r.Refuse()
}

// TryGrow is Grow for callers that hold a lock: if it reports false, nothing is counted
// or logged until the caller calls Refuse.
func (r *Reservation) TryGrow(n int) bool {
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

// Refuse counts and logs that the reservation could not grow, and returns the error for the
// client.
func (r *Reservation) Refuse() error { return r.memory.Refuse() }

// Shrink gives back the memory of n bytes.
func (r *Reservation) Shrink(n int) { r.give(perByte * int64(n)) }

// Release gives back all memory. It may be called again.
func (r *Reservation) Release() { r.give(r.taken) }

func (r *Reservation) give(size int64) {
	if size = min(size, r.taken); size > 0 {
		r.taken -= size
		r.account.Give(size)
		r.forgetIfEmpty()
	}
}

// forgetIfEmpty drops the account of an empty reservation, because the budget may remove it.
func (r *Reservation) forgetIfEmpty() {
	if r.taken == 0 {
		r.account = nil
	}
}
