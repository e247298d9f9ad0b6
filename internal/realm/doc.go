// Package realm says where the credentials of a registry may be sent: registry, URL ->
// whether. It knows nothing about what the credentials are.
//
// A registry that wants a token names where it is to be had, its realm. Whoever answers for
// the registry can name any, and clients send there what they have for the registry.
package realm
