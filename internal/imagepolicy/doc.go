// Package imagepolicy judges images by ImagePolicies: the name and the digest of an image,
// the signatures that a registry has of it -> whether it may be used, who has signed it.
//
// It decides and reads nothing: policies, the Secrets that they name, and signatures are given.
// What a signature is worth is decided by Sigstore's library.
package imagepolicy
