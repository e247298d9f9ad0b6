// Package manifest makes what a person applies to install a package: the namespace, the
// ServiceAccount with its rights, and the ClusterExtension. The command line and the console
// check answers, and make manifests of them, by the same code, but they ask for different ones:
//
//   - the console always names the catalog whose page the form is on;
//   - that a single namespace to watch has to be a list, the console takes from the install
//     modes that the catalog states, and the command line from the bundle, which it pulls.
package manifest
