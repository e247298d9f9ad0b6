// Package crdupgrade says what an upgrade of CustomResourceDefinitions can break:
// (old, new) -> [Finding], sorted, without duplicates, the same for the same
// input.
//
// Old is the definition as the cluster has it, new the one of the bundle. Only
// what the upgrade changes is said: a loosening is no finding, nor is what was
// already so. Titles, descriptions and examples are never compared.
//
// What is done with a finding follows from its kind:
//
//	Blocks     scope or kind changed, a stored version removed, the schema of a
//	           version removed: the API server refuses these, whatever is stored
//	NeedsData  a field removed, a constraint added or tightened, another version
//	           stored without conversion, a definition dropped: only stored
//	           objects can tell whether anything breaks
//	Note       a version that is no longer served, and changes of defaults, names,
//	           subresources, selectable fields, conversion, and of who owns what
//	           in server-side apply; what one served version holds and another
//	           does not; a removed field of a status that its controller writes
//	           anew: of interest to those who use the API, and no reason to stop
//
// Enumerations, bounds and defaults are compared by crdify. The walk through the
// schema is our own: crdify takes branches of anyOf for fields, a map for one
// value, and every change of a keyword that it does not know for an error, and it
// does not expect versions without a schema.
//
// The package is pure. It reads neither definitions nor stored objects; who does
// decides what [NeedsData] comes to.
package crdupgrade
