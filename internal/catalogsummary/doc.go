// Package catalogsummary says in a line for each package what a catalog has: objects of the
// catalog -> what whoever looks for an operator wants to read of each package.
//
// The server of catalogs makes the summary once for each content, and tools make it where
// there is none. Texts in one line are folded and cut. Names of packages and bundles are as
// whoever wrote the catalog has them, and not fit to be shown to a terminal as they are.
package catalogsummary
