// Package hosts runs programs that people use, too large for each run of CI, with what wrap --install
// writes into their configuration.
package hosts
