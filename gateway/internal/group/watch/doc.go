// Package watch has what the clients of a group follow followed at its members.
//
// For each profile of the group there is one watch, however many clients it has: it follows each
// list at all members, and each resource at those that may have it. A member that is lost, or
// replaced, is followed again, and then what may have been missed is told as changed. Nothing
// that a member does ends what clients follow.
//
// The package knows neither names nor requests: who has a resource is said by the group.
package watch
