// Package catalogsummary says in a line for each package what a catalog has: objects of the
// catalog -> what whoever looks for an operator wants to read of each package.
//
// The server of catalogs makes the summary once for each content, and tools make it where
// there is none. All texts are cut; they stay as whoever wrote the catalog has them, and are
// not fit to be shown to a terminal as they are.
package catalogsummary
