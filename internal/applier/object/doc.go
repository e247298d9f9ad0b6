// Package object has what is known of a single object of a release, whatever is done
// with it: its key.
package object
