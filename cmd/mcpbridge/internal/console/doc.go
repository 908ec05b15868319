// Package console shows in a terminal what the admin page shows: what passes, and what a
// gateway holds at the moment.
package console
