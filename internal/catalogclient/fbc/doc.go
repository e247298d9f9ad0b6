// Package fbc splits a stream of file-based catalog content into its objects:
// io.Reader or fs.FS -> Object, one at a time, each as the JSON text it stands for.
//
// The stream is a sequence of JSON objects and YAML documents, in any mix. The
// reader of catalogs and the server of catalogs share this package, so that
// what one accepts the other can read.
//
// The content is hostile input. Every dimension of it is bounded by Limits, the
// way through a folder by WalkLimits, and only regular files are opened. Nothing of
// an object is decoded beyond what identifies it, and its names are opaque keys:
// this package reads what it is given and nothing else, and knows no schema besides
// the rule that an olm.package object is named after its package.
package fbc
