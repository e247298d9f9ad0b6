// Package console has a real browser show every page of kubectl extension console, on a local
// cluster with real catalogs. Its tests are the package.
package console
