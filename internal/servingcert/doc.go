// Package servingcert issues the certificates of the catalog server and of the
// metrics server where none is given: names and time -> a Secret that all replicas
// share -> a certificate to serve with, and the authorities by which a client in the
// same process trusts every replica.
//
// What to do is decided by [selfissued]. The key of the certificate is in the
// Secret and in memory, nowhere else. The package knows nothing of catalogs or metrics,
// and does not log or return anything secret.
package servingcert
