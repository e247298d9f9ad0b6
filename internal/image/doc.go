// Package image turns an image reference into a verified, bounded and rooted
// file tree: reference -> digest -> fs.FS.
//
// Registries are reached as cluster administrators know it from their nodes:
// mirrors and blocked registries from registries.conf, credentials from an
// auth file, certificates from a directory, signatures from a policy file. No
// intermediate image layout is written: each layer streams from the registry
// through digest verification, decompression and a bounded tar reader into
// the cache.
//
// Images are hostile input. Everything that comes from outside is bounded (see
// [Limits]), links and special files are refused, and no name from an image or
// a reference ever becomes a path outside the directory that belongs to it.
//
// The package knows nothing about what the files mean, and it does not decide
// what to retry: it returns typed errors and leaves that to the caller.
package image
