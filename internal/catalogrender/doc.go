// Package catalogrender makes file-based catalogs out of what authors have: catalogs, bundles
// and templates -> the objects of a catalog.
//
// What comes out is what opm 1.73 prints: parsing, properties, migrations and templates are
// those of operator-registry. Its own renderer is not used, because that brings a database,
// a container runtime and another way to pull images along.
package catalogrender
