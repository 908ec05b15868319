//go:build unix && !linux

package process

// Without /proc a reused process id is not recognized, and a process that was being
// started when mcpbridge was killed is not found.

func begun(int) string { return "" }

func startedOf(map[uint64]string) map[int]bool { return nil }
