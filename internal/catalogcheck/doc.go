// Package catalogcheck finds what is wrong with a file-based catalog, for its
// author: fs.FS -> []Problem, each with the file and the object it is in.
//
// It holds a catalog against the rules of those who read it: the decoder that
// server and client share, the versions of bundle, the skipRanges of resolve,
// the references of image and the names of the API. What they refuse, and what
// cannot be meant, is an error; what works but is likely a mistake, or is one to
// other readers of catalogs, is a warning.
//
// It opens no file but those of the catalog, and changes nothing; what is in the images
// of bundles it is told. Content is hostile: it is bounded, and its names are quoted and
// cut in messages.
package catalogcheck
