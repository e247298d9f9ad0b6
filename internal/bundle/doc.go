// Package bundle turns the files of a bundle into the Kubernetes objects that
// a cluster gets: fs.FS -> Bundle -> []object.
//
// Everything here is pure: no network, no clock, no logging. The same files
// and the same options give the same objects in the same order.
package bundle
