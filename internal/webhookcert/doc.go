// Package webhookcert keeps the certificates of webhooks, and of the servers of APIs,
// that nobody else issues: the objects of an installed bundle as they are on the cluster, time ->
// what to write to them next.
//
// The Secrets with a [bundle.AnnotationCertificateNames] hold a certificate with
// its private key, which is nowhere else. What has a
// [bundle.AnnotationInjectCAFrom] trusts the authorities of such a Secret. No
// certificate is published before all that call trust it:
//
//	Secret               who calls              servers
//	empty                trust nobody           wait
//	a staged             trust nobody           wait
//	a staged             trust a                wait
//	a                    trust a                serve a
//	   … until a third of its life is left …
//	a, b staged          trust a                serve a
//	a, b staged          trust a and b          serve a
//	   … for an hour …
//	b                    trust a and b          serve a, sooner or later b
//	   … until the end of a …
//	b                    trust b                serve b
//
// Each row follows from the one before by writes that can be repeated and be
// interrupted between any two. A certificate that is lost is replaced on the
// same way without the waits; what callers trusted before, they still do.
//
// The package does no I/O: see the applier for who reads and writes, and as whom.
package webhookcert
