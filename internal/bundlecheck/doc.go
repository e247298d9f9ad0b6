// Package bundlecheck finds what is wrong with a bundle, for its author:
// fs.FS -> []Problem, each with the file and the field it is in.
//
// What parsing, validating or rendering refuses, in any install mode that the
// bundle supports, is an error, and so is what cannot work on any cluster. What is installed, but maybe not as its author
// thinks or only where something else is, is a warning.
//
// It opens no file but those of the bundle, and changes nothing. Content is
// hostile: it is bounded, and messages are cut and without control characters.
package bundlecheck
