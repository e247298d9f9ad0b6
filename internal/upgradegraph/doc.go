// Package upgradegraph draws which bundles of a package upgrade which:
// (resolve.Package, View) -> [Graph] -> Mermaid, DOT or SVG.
//
// It is a function of its arguments, and the order of channels, entries,
// bundles and skips never changes a drawing. Texts of catalogs are hostile:
// they are cut, they are escaped as each format needs it, and they are never
// identifiers. Drawings are bounded too; what does not fit is counted and said.
//
// It does not say which upgrade is chosen: that is given as a path, and the path
// is what package resolve says.
package upgradegraph
