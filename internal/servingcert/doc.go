// Package servingcert issues the certificate of the catalog server where none
// is given: names and time -> a Secret that all replicas share -> a certificate
// to serve with, and the authorities by which a client in the same process
// trusts every replica.
//
// An authority signs one certificate, and its key is forgotten: there is nothing
// with which to sign another. The key of the certificate is in the Secret and in
// memory, nowhere else. A successor is published before it is served, so that
// whoever follows the Secret trusts it by then.
//
// What to do is a pure function of the Secret as found and the time. The package
// knows nothing of catalogs, and does not log or return anything secret.
package servingcert
