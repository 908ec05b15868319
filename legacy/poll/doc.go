// Package poll finds changes that a server does not report. A [Poller] fetches lists and
// resources repeatedly, while they have subscribers, and compares digests.
package poll
