// Package packagecard has what people read of a package of a catalog: its objects -> all
// there is to tell of it, and its icon.
//
// The content comes from strangers. Texts in one line are folded and cut. Names of packages and
// bundles, and descriptions in Markdown, are as they wrote them: whoever shows them has to make
// them harmless. Icons are checked to be images.
package packagecard
