// Package shown proves with published servers and clients of both eras what clients see of a
// server whose tools, prompts and resources are chosen and renamed.
package shown
