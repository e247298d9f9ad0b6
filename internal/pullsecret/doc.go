// Package pullsecret keeps a file with the registry credentials of the
// controller: a global pull secret and the pull secrets of its own
// ServiceAccount -> one file in Docker's format, which the image puller reads.
//
// Only the Secrets that are named are read, each by a watch of its own. Nothing
// of their content is logged or part of an error, and the file is for the owner
// of the process only.
package pullsecret
