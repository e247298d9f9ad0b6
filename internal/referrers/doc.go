// Package referrers reads all that a registry has to say of what refers to an image, where it says
// that in pages: a request -> one answer. It knows nothing about what the referrers are.
//
// The library that asks reads the first page only. A signature may be on any.
package referrers
