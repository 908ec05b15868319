// Package remember keeps what servers said of themselves from one run of
// mcpbridge to the next.
//
// It answers "what did this command say when it was last started?". A [Store] is
// a folder of the user's with one file per [Key]; a key is a hash of everything
// that the answer may depend on. A [Record] is at most [MaxAge] old, and only a
// memory: when the server answers, its answer is what counts.
//
// The folder and its files are the user's alone. What somebody else owns or can
// write is left alone, and so is whatever can't be read as a record. The package
// starts no goroutines and doesn't know who asks, or how a server is asked.
package remember
