// Package chartrepo reads Helm charts from https servers:
//
//	a chart repository, the name of a chart, a range of versions -> the address of its archive
//	the address of an archive -> its bytes, and those of its provenance file
//
// The package follows redirects to https only, and bounds the size and the time of each
// answer. Helm's own client reads answers of any size, which is why the package does not use it.
package chartrepo
