// Package legacy holds what speaks the revisions of the Model Context Protocol that
// have a session: 2024-11-05 to 2025-11-25. It has no code of its own.
//
//   - Package front serves clients. It holds a session for each, whatever the server
//     behind it speaks.
//   - Package back serves requests that stand alone, by a server that insists on a
//     session; and passes on the whole sessions of legacy clients.
//   - Package projection turns what a modern server says into what a client of an
//     older revision takes.
//
// Front and back refuse to know each other: results and errors leave the back as
// the server wrote them, error codes aside whose meaning changed between eras, and
// the front does not know whom it asks. What they have in common is in package
// exchange, and in those below it.
package legacy
