// Package bundlecheck finds what is wrong with a bundle, for its author:
// fs.FS -> []Problem, each with the file and the field it is in.
//
// An error is a problem that prevents parsing, validating or rendering in an install
// mode that the bundle supports, or that no cluster can make work. A warning is a
// problem of a bundle that can be installed: it may not work as its author expects, or
// it requires something else on the cluster.
//
// The package opens only files of the bundle, and changes nothing. The content is not
// trusted: it is bounded, and messages are cut and without control characters.
package bundlecheck
