// Package engines runs one suite over each engine of replicas: a nats-server in
// the process of the test, and Debian's redis-server. It is a module of its own
// so that the product does not depend on nats-server.
package engines
