// Package preflight holds what is about to be written against the cluster: all
// that speaks against it, before the first write.
//
//	old and new definitions, what is stored -> [Verdict] on the definitions
//	objects, the rights of who writes them  -> what is missing, what grows
//
// The checks themselves are pure and in packages of their own: crdupgrade says
// how definitions differ, storeddata which objects that breaks, permission which
// rights it takes. This package reads what they need, through clients that act as
// the ServiceAccount, and joins their answers. It writes nothing.
package preflight
