// Package catalogsource reads a catalog from wherever a person has it: a folder, a
// file, standard input, the URL below which it is served, or an image -> its files, a
// line for each package, all of one package, or its packages in a catalog client.
//
// All commands that read catalogs do so here. Nothing that was fetched is kept, and
// what is read is bounded by the limits of catalogs and images.
package catalogsource
