// Package catalogrender_test holds the catalogs that are rendered here against those of opm.
package catalogrender_test
