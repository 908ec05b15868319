// Package owners answers, for a group without prefixes, which member has which name.
//
// A [Table] has the names of all members, as one client sees them: a name that several members have
// is contested, unless one of them is preferred. [Tables] has the tables of all clients, says when
// they are too old, and has those that are equal once.
//
// The package reads no lists, and does not know what a member is: members are places.
package owners
