// Package requirement says whether a cluster has what a bundle states that it
// needs: ([List], [Cluster]) -> [Result].
//
// A bundle states it by properties in its catalog, or in its own files ([OfContent]): olm.package.required,
// olm.gvk.required, olm.constraint with all, any and not nested to any depth
// and with cel, olm.maxOpenShiftVersion, clusterextensions.dev/kubeVersion, and the minKubeVersion
// of its CSV.
//
// It is a function of its arguments: it reads no cluster, no network and no
// clock. What it reads comes from catalogs that anybody may have written, so it
// is bounded in size, in depth and in the work that it can cause.
//
// Rules are evaluated on the properties of one installed extension after the
// other. They may use the standard functions of CEL without regular expressions
// and time, and semver_compare. Lists and maps that they build hold no others,
// but for constants; an index is a constant.
package requirement
