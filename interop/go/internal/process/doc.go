// Package process answers one question: how does a test run programs beside
// itself, so that it knows when they are ready, can end them politely or not at
// all politely, and leaves none behind?
//
// It knows nothing of what the programs are.
package process
