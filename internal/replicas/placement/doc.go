// Package placement answers one question: which replica serves the calls of a profile, if a
// server has a state of its own?
//
// It is the one that holds the claim on the profile, by which it also watches for the others.
// A [Table] claims at the first call, and knows the holder of later ones without asking the
// engine. Without claims all replicas choose the same one by [replicas.View.Pick]; while the
// engine is away, too, if all others have answered that they don't hold the name.
//
// The package does not know what a profile is, and carries no requests.
package placement
