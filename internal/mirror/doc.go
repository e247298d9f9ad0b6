// Package mirror finds what a cluster without network needs of a catalog: the objects of the
// catalog, what a person wants of it, a place -> the images, where each is to be, and what
// tells the nodes and the controller of a cluster so.
//
// It reads and writes nothing itself.
package mirror
