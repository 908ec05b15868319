// Package owners answers which member of a group has what: a name, or a URI.
//
// Without prefixes, a [Table] has the names of all members, as one client sees them: a name that
// several members have is contested, unless one of them is preferred. [Tables] has the tables of all
// clients, says when they are too old, and has those that are equal once. A [Rest] has names of later
// pages of one list, to be shown. [URIs] remembers which member lists a URI,
// has a template for it, or has handed it out.
//
// What a member says by itself names it: the logger of a log message, the text of a question.
//
// The package reads no lists, and does not know what a member is: members are places, or names.
package owners
