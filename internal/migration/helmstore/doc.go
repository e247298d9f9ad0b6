// Package helmstore reads and writes the records that Helm keeps of its releases: Secrets in the
// namespaces of the releases, one for each revision.
package helmstore
