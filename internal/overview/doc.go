// Package overview says where an extension stands in one line: its spec and status -> a [Row].
//
// It reads the status alone, by the conditions that the controller's phase decides on, so that
// who may list extensions needs no other right. It is pure.
package overview
