// Package bundle turns the files of a registry+v1 or plain+v0 bundle into the
// Kubernetes objects that a cluster gets: fs.FS -> Bundle -> []object.
//
//	Parse        files, bounded, into a [Bundle]; content that cannot be read is refused as a whole
//	Validate     every rule over the parsed bundle, all violations at once
//	ParseConfig  what the user wrote in spec.config.inline, against what the bundle supports
//	Render       the objects, sorted, a fresh copy each time
//	Digest       one name for a set of objects
//
// Everything here is pure: no network, no clock, no logging, no files besides
// those of the fs.FS it is given. The same files and the same options give the
// same objects in the same order. Bundles are hostile input: every bound is a
// named constant in limits.go.
//
// Three kinds of errors tell a caller what to do about them, and none of them
// goes away by trying again: [*InvalidError] (the content of the bundle),
// [*UnsupportedError] (a feature that OLM v1 does not have) and [*ConfigError]
// (what the user wrote). Any other error of Parse is a failure to read.
package bundle
