// Package overview puts together what a gateway tells of itself, and sends what its admin
// address asks for. The gateway has what is told; how much of it is looked at is decided
// here, so that telling has a bounded cost whatever there is.
package overview
