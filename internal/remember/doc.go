// Package remember stores the descriptions of servers between runs of mcpbridge.
//
// A [Store] is a folder of the user with one file per [Key]. A key is a hash of
// everything on which a server's description may depend. A [Record] is the last
// description that a command returned, and is at most [MaxAge] old. When the server
// responds, its response replaces the record. A list is what a server listed last for such a
// client, for groups of servers.
//
// Only the user may own and write the folder and its files. The package ignores files and
// folders that others own or can write, and files that are not valid records. It starts
// no goroutines, and does not know the protocol of servers.
package remember
