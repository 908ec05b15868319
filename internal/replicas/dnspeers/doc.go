// Package dnspeers knows the replicas by names whose addresses they have, as a
// headless service of Kubernetes has them. Each address is asked who it is, at
// each heartbeat. There are no claims and no records.
package dnspeers
