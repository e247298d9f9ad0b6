// Package catalogpeer gets the content of catalogs from other replicas of the controller: a
// catalog, the digest that its status names -> files.
//
// A replica that has nothing yet asks the others before it asks a registry. These may be
// out of reach, and the others are near. What it gets is stored and served like the content
// of an image, so it takes it from those alone who prove who they are, and who say that it
// is of that very digest. The package decides neither what is wanted nor what is done
// without it.
package catalogpeer
