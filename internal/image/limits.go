package image

import (
	"cmp"
	"time"
)

// Bounds that hold for every image.
const (
	// MaxManifestBytes bounds a manifest, an index and an image
	// configuration. Real ones are kilobytes; all are held in memory. The
	// transport itself stops reading a manifest at 4 MiB.
	MaxManifestBytes = 1 << 20
	// MaxLayers is what container runtimes can mount at all.
	MaxLayers = 128
	// MaxCompressedBytes bounds the download. The largest public catalog
	// images carry an operating system and a prebuilt cache: about 1 GiB.
	MaxCompressedBytes = 2 << 30
	// MaxExpandedBytes bounds what is decompressed, kept or not: it is what
	// stops a bomb hidden in files that are skipped.
	MaxExpandedBytes = 8 << 30
	// MaxEntries bounds the tar headers read over all layers. An operating
	// system layer has some 30,000.
	MaxEntries = 300_000
	// MaxPathBytes is the longest kept path, well below what file systems take.
	MaxPathBytes = 512
	// MaxPathDepth is the deepest kept path: catalogs nest two or three
	// directories below their root, and every walk over a tree recurses.
	MaxPathDepth = 16
	// NetworkTimeout is how long a registry may take to answer with a
	// manifest, all mirrors included, and how long it may stay silent within
	// a layer.
	NetworkTimeout = 2 * time.Minute
	// RateWindow and RateBytes are the slowest that a registry may be: so many bytes
	// of blobs in so much time of waiting for them. No link that is in use is as slow
	// as 64 KiB a minute. The window is longer than a registry may stay silent, so that
	// one that was, and goes on, has the time to make up for it.
	RateWindow = 3 * time.Minute
	RateBytes  = 3 * 64 << 10
)

// Bounds on a bundle. What is kept of it is rendered in memory and has to fit
// into a release record of about 11 MiB. Nearly all images hold nothing else; a
// few are built on a small operating system.
const (
	MaxBundleBytes         = 64 << 20
	MaxBundleFileBytes     = 16 << 20
	MaxBundleEntries       = 5_000
	MaxBundleExpandedBytes = 1 << 30
)

// Bounds on what is kept of a catalog. The largest public ones hold some
// 300 MiB in one to ten thousand files and are read as a stream.
const (
	MaxCatalogBytes     = 1 << 30
	MaxCatalogFileBytes = 512 << 20
	MaxCatalogEntries   = 50_000
)

// Limits bounds one image. A zero field means the default for what is
// selected, see [DefaultLimits].
type Limits struct {
	ManifestBytes   int64         // manifest, index and configuration, each
	Layers          int           // layers of the image
	CompressedBytes int64         // all layers as the manifest declares them
	ExpandedBytes   int64         // all layers decompressed, kept or not
	Entries         int           // tar headers over all layers, kept or not
	ContentBytes    int64         // written to disk over all layers
	FileBytes       int64         // one kept file
	KeptEntries     int           // files, directories and whiteouts kept over all layers
	PathBytes       int           // length of a kept path
	PathDepth       int           // elements of a kept path
	NetworkTimeout  time.Duration // for a manifest, and between two reads of a layer
	RateWindow      time.Duration // of waiting for blobs, in which so much has to come:
	RateBytes       int64
}

// DefaultLimits returns the limits for the given selection.
func DefaultLimits(s Selection) Limits {
	limits := Limits{
		ManifestBytes:   MaxManifestBytes,
		Layers:          MaxLayers,
		CompressedBytes: MaxCompressedBytes,
		ExpandedBytes:   MaxBundleExpandedBytes,
		Entries:         MaxEntries,
		ContentBytes:    MaxBundleBytes,
		FileBytes:       MaxBundleFileBytes,
		KeptEntries:     MaxBundleEntries,
		PathBytes:       MaxPathBytes,
		PathDepth:       MaxPathDepth,
		NetworkTimeout:  NetworkTimeout,
		RateWindow:      RateWindow,
		RateBytes:       RateBytes,
	}
	if s == CatalogContent {
		limits.ExpandedBytes = MaxExpandedBytes
		limits.ContentBytes = MaxCatalogBytes
		limits.FileBytes = MaxCatalogFileBytes
		limits.KeptEntries = MaxCatalogEntries
	}
	return limits
}

// or returns l with its zero fields taken from defaults.
func (l Limits) or(defaults Limits) Limits {
	return Limits{
		ManifestBytes:   cmp.Or(l.ManifestBytes, defaults.ManifestBytes),
		Layers:          cmp.Or(l.Layers, defaults.Layers),
		CompressedBytes: cmp.Or(l.CompressedBytes, defaults.CompressedBytes),
		ExpandedBytes:   cmp.Or(l.ExpandedBytes, defaults.ExpandedBytes),
		Entries:         cmp.Or(l.Entries, defaults.Entries),
		ContentBytes:    cmp.Or(l.ContentBytes, defaults.ContentBytes),
		FileBytes:       cmp.Or(l.FileBytes, defaults.FileBytes),
		KeptEntries:     cmp.Or(l.KeptEntries, defaults.KeptEntries),
		PathBytes:       cmp.Or(l.PathBytes, defaults.PathBytes),
		PathDepth:       cmp.Or(l.PathDepth, defaults.PathDepth),
		NetworkTimeout:  cmp.Or(l.NetworkTimeout, defaults.NetworkTimeout),
		RateWindow:      cmp.Or(l.RateWindow, defaults.RateWindow),
		RateBytes:       cmp.Or(l.RateBytes, defaults.RateBytes),
	}
}
