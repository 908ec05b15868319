// Package chart asks whether deploy/helm and deploy/replicas can be used as they are.
//
// The chart is linted and rendered by Helm's own packages for the values below its folder
// ci, and what comes out is decoded by the types of Kubernetes, which refuse what they do
// not know. Then a pod is laid out on this machine as a kubelet would, and the program is
// asked about its configuration as the user, in the file system and with the environment
// that it has there.
//
// It is a module of its own, so that the packages of Kubernetes are nobody else's.
package chart
