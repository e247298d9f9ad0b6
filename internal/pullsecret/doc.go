// Package pullsecret keeps a file with the registry credentials of the
// controller: a global pull secret and the pull secrets of its own
// ServiceAccount -> one file in Docker's format, which the image puller reads.
// For a single pull, those of another ServiceAccount can be added, as far as it
// may read them itself, or those that a catalog names.
//
// Only the Secrets that are named are read: those of the controller and of catalogs
// each by a watch of its own, those of others when they are needed. Nothing of their
// content is logged or part of an error, and the files are for the owner of the
// process only.
package pullsecret
