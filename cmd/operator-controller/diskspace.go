package main

import "github.com/clusterextensions/operator-controller/internal/diskspace"

// What there may be below the cache path, in bytes. The volume in config/manager has
// place for all of it, and for the copies of indexes, which have a bound of their own.
const (
	mebibyte = 1 << 20

	// bundleSpace has the images of hundreds of bundles: most have less than a
	// mebibyte, and one has at most 64.
	bundleSpace = 1024 * mebibyte

	// pulledSpace has the images of catalogs until they are stored, and storingSpace
	// their content until it is whole.
	pulledSpace  = 2304 * mebibyte
	storingSpace = 2304 * mebibyte
	// pullShares is the number of catalogs that are pulled at a time. The largest public
	// ones fit into a share.
	pullShares = 4
	pullShare  = 320 * mebibyte

	// catalogSpace has the content of catalogs that are served.
	catalogSpace  = 3072 * mebibyte
	catalogShares = 8
	catalogShare  = 256 * mebibyte
)

func newBundleSpace() *diskspace.Space {
	return diskspace.New(diskspace.Config{What: "images of bundles", Bytes: bundleSpace})
}

func newPulledSpace() *diskspace.Space {
	return diskspace.New(diskspace.Config{What: "images of catalogs", Bytes: pulledSpace, Shares: pullShares, Share: pullShare})
}

func newStoringSpace() *diskspace.Space {
	return diskspace.New(diskspace.Config{What: "catalogs that are being stored", Bytes: storingSpace, Shares: pullShares, Share: pullShare})
}

func newCatalogSpace() *diskspace.Space {
	return diskspace.New(diskspace.Config{What: "catalogs", Bytes: catalogSpace, Shares: catalogShares, Share: catalogShare})
}
