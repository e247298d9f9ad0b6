package controller

import (
	"fmt"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// A spec may name the image of a bundle, and no catalogs. Which bundle that is, the image
// says: the first pass that goes there learns it once the image has come, and those after it
// remember. The status has the digest, so that a tag stands for the same in the next process.

// namedBundle is what the image that a spec names was found to be.
type namedBundle struct {
	image    string
	identity bundle.Identity

	// digest is what the image stood for when it was looked up, and generation that of the
	// spec at that time: until that changes, a tag stands for the same.
	digest     string
	generation int64
}

// targetOfImage is where a pass goes with a spec that names an image. Its Bundle is empty as
// long as nobody has looked.
func targetOfImage(wanted Wanted, observed Observed) Target {
	installed, named := observed.Installation.Installed, observed.Named
	target := Target{Action: Install, Image: wanted.Image, IsNamed: true, Bundle: named.identity, Digest: named.digest}
	switch {
	case installed == nil:
		return target
	case !isOfImage(*installed, wanted.Image, named):
		target.Action = Upgrade
		return staying(target, *installed)
	}
	target.Bundle, target.Digest, target.Action = installed.Bundle, installed.Digest, Keep
	if observed.isToBeDoneAnew() || inputsDiffer(installed, wanted.Inputs) {
		target.Action = Upgrade
	}
	return target
}

// staying keeps what is installed where a target leads to another package.
func staying(target Target, installed installation.Revision) Target {
	was, becomes := installed.Bundle.Package, target.Bundle.Package
	if was == "" || becomes == "" || was == becomes {
		return target
	}
	return Target{
		Action: Keep, Bundle: installed.Bundle, Image: installed.Image, IsNamed: true,
		Err: otherPackage(fmt.Sprintf("image %s has a bundle of package %q", target.Image, becomes), was),
	}
}

// otherPackage refuses what would have one package in the place of another.
func otherPackage(wanted, installed string) error {
	return &InvalidSpecError{Err: fmt.Errorf("%s, and package %q is installed: another package is another extension", wanted, installed)}
}

// isOfImage says that a revision is what a spec names: by the same reference, or with the same
// content. So there is nothing to do where a catalog named it before.
func isOfImage(installed installation.Revision, image string, named namedBundle) bool {
	isKnown := digestOfImage(image) == "" && named.digest != "" // what a tag stands for
	return hasImage(installed, image) || isKnown && named.digest == installed.Digest
}

// identify finds out which bundle the image of the spec has.
func identify(wanted Wanted, unpacked unpackedBundle) (namedBundle, error) {
	identity, err := unpacked.content.Identity()
	return namedBundle{image: wanted.Image, identity: identity, digest: unpacked.Digest, generation: wanted.Generation}, err
}

// namedBy is what is known of the image that a spec names: by the record of what is installed,
// by an earlier pass, or by the status, which an earlier process has written. It is nothing if
// the image was not looked at.
func (r *Reconciler) namedBy(wanted Wanted, installed *installation.Revision) namedBundle {
	remembered, _ := r.named.Load(wanted.Owner.Name)
	looked, _ := remembered.(namedBundle)
	var recorded namedBundle
	if installed != nil {
		recorded = namedBundle{image: installed.Image, identity: installed.Bundle, digest: installed.Digest}
	}
	for _, known := range []namedBundle{recorded, looked, wanted.Resolved} {
		if known.standsFor(wanted, installed) {
			return known
		}
	}
	return namedBundle{}
}

// standsFor says that an image is what a spec names. A tag is not, once the spec has changed,
// unless it led to what is installed: that stays, wherever the tag goes.
func (n namedBundle) standsFor(wanted Wanted, installed *installation.Revision) bool {
	switch {
	case n.digest == "" || n.image != wanted.Image:
		return false
	case digestOfImage(wanted.Image) != "" || n.generation == wanted.Generation:
		return true
	}
	return installed != nil && installed.Digest == n.digest
}

// resolvedIn is what the status of an extension says of the image that its spec names. What is
// no digest was not written by a controller, and says nothing.
func resolvedIn(ext *ocv1.ClusterExtension) namedBundle {
	resolved := ext.Status.ResolvedSource
	if resolved == nil || digestOfImage("@"+resolved.Digest) == "" {
		return namedBundle{}
	}
	return namedBundle{image: resolved.Ref, digest: resolved.Digest, generation: ext.Status.ObservedGeneration}
}

// resolvedOf is what the status says then. It stays while it is not known what is installed.
func resolvedOf(ext *ocv1.ClusterExtension, outcome Outcome) *ocv1.ResolvedBundleSource {
	named := outcome.Observed.Named
	switch {
	case ext.Spec.Source.Bundle == nil:
		return nil
	case outcome.Observed.InstallationErr != nil:
		return ext.Status.ResolvedSource.DeepCopy()
	case named.digest == "":
		return nil
	}
	return &ocv1.ResolvedBundleSource{Ref: named.image, Digest: named.digest}
}
