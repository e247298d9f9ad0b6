// Package selfissued makes certificates for servers of which we also tell the
// clients whom to trust: names, time -> the data of a Secret that holds a
// certificate, its successor, and the authorities of both.
//
// An authority signs one certificate, and its key is forgotten: there is nothing
// with which to sign another. A successor is published before it is served, so
// that whoever follows the authorities trusts it by then; and the certificate
// before it stays trusted until it ends, for servers that are late to change.
//
// What to do is a pure function of the data as found and the time. The package
// does no I/O, and does not return anything secret in an error.
package selfissued
