// Package catalogclient keeps what resolution needs of file-based catalogs: one
// catalog's content over HTTP -> a compact, immutable index of its packages.
//
// Content is identified by digest and read once per digest. It is streamed,
// and what resolution does not need is never decoded nor kept, so that memory
// follows the number of bundles and not the size of the catalog. The last good
// index stays in use, on disk across restarts too, until its successor is
// complete; a truncated, empty or malformed body never replaces it.
//
// The package decides nothing about catalogs: whether one is served, when to
// read it again and what a failure means are for the caller. It knows no
// Kubernetes types and makes no request besides the one for the content.
package catalogclient
