// Package imagecopy copies images from registry to registry as they are, with what is
// attached to them: where an image is, where it is to be -> whether it is there whole.
//
// Indexes are copied with all their images, and manifests byte for byte, so that digests
// stay what they were, and signatures valid. Attached are the tags that cosign makes of a
// digest, and what the registry says refers to it. What is at the target already is not sent
// again: a copy that was interrupted goes on where it stopped.
//
// Registries are those of others: what they send is bounded and held against its digest.
package imagecopy
