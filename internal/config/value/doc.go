// Package value knows what values of the configuration look like (addresses, hosts),
// what they refer to (variables, files that hold a value, files beside the configuration),
// and what of them is secret.
//
// What is secret it finds by the names that people give to credentials, and by where URLs and
// headers have them. It knows no key, and its errors never contain a value.
package value
