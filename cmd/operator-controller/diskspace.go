package main

import (
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

// What there may be below the cache path, in bytes. The volume in config/manager has
// place for all of it, and for the copies of indexes, which have a bound of their own.
const (
	mebibyte = 1 << 20

	// bundleSpace has the images of hundreds of bundles: most have less than a
	// mebibyte. One has at most 64, and so may all that are pulled at a time, while those
	// of as many workers as there are by default are in use.
	bundleSpace = 2560 * mebibyte

	// pulledSpace has the images of catalogs until they are stored, and storingSpace
	// their content until it is whole. The largest public ones fit into a share.
	pulledSpace   = 4864 * mebibyte
	pulledShares  = catalogserver.MaxPulls
	storingSpace  = 2304 * mebibyte
	storingShares = catalogserver.MaxStores
	newShare      = 320 * mebibyte

	// catalogSpace has the content of catalogs that are served, and what is left of it for
	// who still reads content that was replaced.
	catalogSpace  = 3072 * mebibyte
	catalogShares = 8
	catalogShare  = 256 * mebibyte
)

func newBundleSpace() *diskspace.Space {
	return diskspace.New(diskspace.Config{What: "images of bundles", Bytes: bundleSpace})
}

func newPulledSpace() *diskspace.Space {
	return diskspace.New(diskspace.Config{What: "images of catalogs", Bytes: pulledSpace, Shares: pulledShares, Share: newShare})
}

func newStoringSpace() *diskspace.Space {
	return diskspace.New(diskspace.Config{What: "catalogs that are being stored", Bytes: storingSpace, Shares: storingShares, Share: newShare})
}

func newCatalogSpace() *diskspace.Space {
	return diskspace.New(diskspace.Config{What: "catalogs", Bytes: catalogSpace, Shares: catalogShares, Share: catalogShare})
}
