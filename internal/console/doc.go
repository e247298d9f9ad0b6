// Package console is a web page for one person: what a cluster has of extensions and
// catalogs -> pages that show it.
//
// It asks a cluster through the ports of this package, with the rights of whoever started
// it, and has no way to write. All that it shows comes from strangers, or may: texts go
// through html/template and through harmless, descriptions through Markdown, and icons are
// images or nothing.
package console
