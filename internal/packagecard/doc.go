// Package packagecard has what people read of the packages of a catalog: the objects of
// the catalog -> a card for each package, and all there is to tell of one.
//
// The content comes from strangers. Texts are bounded, and otherwise as they wrote them:
// whoever shows them has to make them harmless. Icons are checked to be images.
package packagecard
