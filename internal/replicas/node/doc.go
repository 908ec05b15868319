// Package node puts together what makes a process one of several replicas: the
// engine that knows the others, the group that carries requests between them,
// and the listener by which the others reach this one.
package node
