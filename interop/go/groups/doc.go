// Package groups proves with published servers and clients of both eras that a group of
// servers is to its clients what its members are at their own endpoints, when members
// ask at once, and while members are lost and come back.
package groups
