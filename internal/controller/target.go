package controller

import (
	"errors"
	"fmt"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Action is what a pass is to do about the content.
type Action string

const (
	// None: nothing is installed, and nothing can be.
	None Action = "None"

	// Install a bundle where none is.
	Install Action = "Install"

	// Upgrade from the installed revision to another bundle, image or
	// configuration, or finish what an earlier upgrade has begun.
	Upgrade Action = "Upgrade"

	// Keep the installed revision, and repair it.
	Keep Action = "Keep"
)

// Target is where a pass goes.
type Target struct {
	Action Action

	// Bundle and Image are set unless the action is None, but see IsNamed.
	Bundle bundle.Identity
	Image  string

	// IsNamed says that the spec names the image, and no catalogs. Bundle is empty then until
	// somebody has looked which one it is.
	IsNamed bool

	// Digest is what a named image stands for, if that is known.
	Digest string

	// Resolution is nil when catalogs had no part in the choice.
	Resolution *resolve.Resolution

	// Pending is an upgrade that waits for an approval; nil for none.
	Pending *PendingError

	// NoOffer is why the catalogs offer no upgrades of an installed bundle that the spec allows; nil
	// if they do, or if there are no catalogs. Err does not contain it.
	NoOffer *resolve.Error

	// Err is what stands in the way forward; the installed bundle is kept all
	// the same.
	Err error
}

// isIdentified is false for an image that a spec names and at which nobody has looked.
func (t Target) isIdentified() bool { return t.Bundle.Name != "" }

// isUnchosen reports whether the catalogs led to no choice.
func (t Target) isUnchosen() bool { return (t.Err != nil || t.NoOffer != nil) && t.Resolution == nil }

// decide answers the question of every pass: go forward, stay, or not even
// that. What is installed is kept whatever happens to the way forward.
func decide(wanted Wanted, invalid error, observed Observed) Target {
	if wanted.Image != "" && invalid == nil && observed.isReadable() {
		return targetOfImage(wanted, observed)
	}
	resolution, err := choose(wanted, invalid, observed)
	installed := observed.Installation.Installed
	if observed.ServiceAccountErr != nil {
		// Nothing can be done as an identity that does not exist, not even
		// repair.
		return Target{Action: None, Resolution: resolution, Err: observed.ServiceAccountErr}
	}
	switch {
	case err == nil && resolution != nil:
		return agreedTarget(wanted, observed, resolution)
	case installed == nil:
		return Target{Action: None, Err: err}
	}
	target := Target{Action: Keep, Bundle: installed.Bundle, Image: installed.Image, Err: err}
	isChanged := observed.isToBeDoneAnew() || inputsDiffer(installed, wanted.Inputs)
	isFinished := !observed.Installation.Unfinished
	if unresolved, ok := errors.AsType[*resolve.Error](err); ok && isFinished && allows(wanted.Request, installed.Bundle) && lacksOffer(unresolved, isChanged) {
		target.NoOffer, target.Err = unresolved, nil
	}
	if target.Err == nil && isChanged {
		target.Action = Upgrade
	}
	return target
}

// lacksOffer reports whether unresolved only means that no catalog offers the package of an installed
// bundle. A catalog that cannot be read may offer another bundle: with isChanged, the controller waits for
// it before it applies the new configuration.
func lacksOffer(unresolved *resolve.Error, isChanged bool) bool {
	return unresolved.Kind == resolve.NoBundle && len(unresolved.Catalogs) == 0 || unresolved.Kind == resolve.Unreadable && !isChanged
}

// choose asks the catalogs. Without an error and without a resolution there is
// no catalog to ask and the installed bundle is what the spec allows.
func choose(wanted Wanted, invalid error, observed Observed) (*resolve.Resolution, error) {
	switch {
	case invalid != nil:
		return nil, invalid
	case observed.CatalogsErr != nil:
		return nil, observed.CatalogsErr
	case observed.InstallationErr != nil:
		return nil, observed.InstallationErr
	}
	installed := observed.Installation.Installed
	if installed != nil && installed.Bundle.Package != "" && installed.Bundle.Package != wanted.Request.Package {
		return nil, otherPackage(fmt.Sprintf("spec.source.catalog.packageName is %q", wanted.Request.Package), installed.Bundle.Package)
	}
	if len(observed.Catalogs) == 0 && installed != nil && allows(wanted.Request, installed.Bundle) {
		return nil, nil
	}
	resolution, err := resolve.Resolve(requestOf(wanted, observed), observed.Catalogs)
	if err != nil {
		return nil, err
	}
	return &resolution, nil
}

// requestOf is what is asked of the catalogs.
func requestOf(wanted Wanted, observed Observed) resolve.Request {
	request := wanted.Request
	request.Cluster = observed.Surroundings.cluster()
	if installed := observed.Installation.Installed; installed != nil {
		request.Installed = &installed.Bundle
	}
	return request
}

// allows reports whether a bundle is one that the request could have led to, as
// far as that can be told without a catalog.
func allows(request resolve.Request, installed bundle.Identity) bool {
	if installed.Package != request.Package {
		return false
	}
	version, err := bundle.ParseVersion(installed.Version)
	return err == nil && request.Range.Contains(version)
}

// isToBeDoneAnew says that the installed bundle is to be installed once more, be it
// the one that is wanted.
func (o Observed) isToBeDoneAnew() bool {
	return o.Installation.Unfinished || o.Issuer == IssuerReplaced || o.Reselects
}

func toward(resolution *resolve.Resolution, installed *installation.Revision, anew bool, inputs string) Target {
	target := Target{Bundle: resolution.Identity, Image: resolution.Image, Resolution: resolution}
	switch {
	case installed == nil:
		target.Action = Install
	case installed.Bundle != resolution.Identity || !hasImage(*installed, resolution.Image),
		inputsDiffer(installed, inputs), anew:
		target.Action = Upgrade
	default:
		target.Action = Keep
	}
	return target
}

// hasImage says that a revision was made of an image: by the same reference, or with the same
// content, as when a spec or another catalog has named it before.
func hasImage(installed installation.Revision, image string) bool {
	return installed.Image == image || installed.Digest != "" && installed.Digest == digestOfImage(image)
}

// inputsDiffer is false for records that do not say what their inputs were: an
// extension that another controller installed is not written to on that account.
func inputsDiffer(installed *installation.Revision, inputs string) bool {
	return installed.Inputs != "" && installed.Inputs != inputs
}
