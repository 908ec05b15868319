// Package options makes of a configuration the options of a gateway: what each key is called in
// the public package.
package options
