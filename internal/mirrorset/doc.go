// Package mirrorset makes registries.conf of OpenShift's mirror sets, which are the objects
// ImageDigestMirrorSet and ImageTagMirrorSet: objects, files of an administrator -> a file
// for whoever pulls images.
//
// A cluster need not serve these kinds. What is watched there is one definition for each,
// so that sets are read as soon as they can be, and nothing is asked for before.
//
// Sets are input of others: what cannot be used of one is left out and said, and the rest
// stays in force. The package does not pull images and does not write to the cluster, but
// for events about sets.
package mirrorset
