// Package engines runs one suite over each engine of replicas, as platform teams have them:
// a nats-server in the process of the test, and three as a cluster; Debian's redis-server,
// alone, behind Sentinels, and as a cluster. It also shows what becomes of replicas when an
// engine fails over, moves what it keeps or is lost, and who is let in by TLS, credentials and
// rights. What one server in the process of a test shows in a moment stands in the tests of
// internal/replicas/natskv and internal/replicas/rediskv.
package engines
