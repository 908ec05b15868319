// Package pin notices that a server changes the definitions of its tools.
//
// A model acts on what the definition of a tool says. A server that was looked at once can
// say something else the next day. So [Pins] keeps the digests of definitions in a file of
// the user: those of the first list that was seen whole, and those that a person has
// accepted since. What differs is told, or hidden and refused.
//
// The package reads definitions as bytes and does not know what is in them.
package pin
