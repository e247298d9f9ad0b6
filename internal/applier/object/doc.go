// Package object has what there is to know of single objects of a release, whatever is
// done with them: their keys and owners, to whom they belong, in which order they are
// written, which patch makes them what a revision wants, and which field managers have
// written what it changes. It makes no request.
package object
