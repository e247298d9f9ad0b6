package controller

import (
	"fmt"
	"slices"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// isUnpolled reports whether catalog names its image by a tag that is resolved only when the spec
// of catalog changes. It is false for a digest, whose content cannot change.
func isUnpolled(catalog *ocv1.ClusterCatalog) bool {
	image := catalog.Spec.Source.Image
	return image != nil && image.PollIntervalMinutes == nil && imageref.Digest(image.Ref) == ""
}

// pollingText returns why no newer bundle than chosen is known: its catalog is among unpolled. It
// is empty if chosen is nil, or if the catalogs offer a newer bundle that a rule leaves out.
func pollingText(unpolled []string, chosen *resolve.Resolution) string {
	if chosen == nil || !slices.Contains(unpolled, chosen.Catalog) || chosen.HasNewer() {
		return ""
	}
	return fmt.Sprintf("the controller does not check catalog %q for newer versions: set its spec.source.image.pollIntervalMinutes", chosen.Catalog)
}

// pollingPart returns pollingText for an extension that is at the end of its upgrades; empty for
// any other, which has something else to wait for.
func pollingPart(outcome Outcome, v verdict) string {
	if v.disposition != Settled || outcome.Installed == nil || outcome.Suspended != nil || outcome.waitsFor() != nil || outcome.hasMore() {
		return ""
	}
	return pollingText(outcome.Observed.Unpolled, outcome.Target.Resolution)
}
