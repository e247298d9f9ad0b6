// Package imageref says of an image reference whether it is pinned by digest. Nobody
// else decides it, so that whoever retries, caches and compares means the same.
//
//	image reference -> the digest that it is pinned by
package imageref
