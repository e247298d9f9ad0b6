// Package overview says where extensions stand, and their objects, in one line each.
//
//	spec and status                  -> [Row]
//	Row, objects as they were found  -> [Tree]
//
// Of an extension, it reads the status alone, by the conditions that the controller's phase
// decides on, so that who may list extensions needs no other right. It is pure.
package overview
