package controller

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// issuerPatience is how long who issued certificates may be gone before somebody
// else does it. There is no hurry, as what was issued stays in use; and an issuer
// that is only installed anew is back by then.
const issuerPatience = 10 * time.Minute

// issuing is the kind without which cert-manager is not there.
var issuing = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}

// Issuer says what became of who issues the certificates of the installed revision.
type Issuer string

const (
	// IssuerGone: its kinds are not served, and it may come back.
	IssuerGone Issuer = "Gone"

	// IssuerReplaced: it was gone for so long that another one takes its place.
	IssuerReplaced Issuer = "Replaced"
)

var issuerTexts = map[Issuer]string{
	IssuerGone: "cert-manager is gone, which issued the certificates of webhooks: they stay in use, " +
		"and what is there issues others unless it is back within 10 minutes",
	IssuerReplaced: "cert-manager is gone, which issued the certificates of webhooks: what is there issues others in its place",
}

// lacksKinds says that something was not done because the cluster does not serve the
// kind of an object.
func lacksKinds(outcome Outcome) bool {
	return meta.IsNoMatchError(outcome.Err) || meta.IsNoMatchError(outcome.RepairErr)
}

// lacksIssuer says that what is installed has objects for cert-manager, which is not
// there.
func lacksIssuer(err error) bool {
	//nolint:errorlint // it looks at every error of a tree, errors.As at the first of its type
	switch err := err.(type) {
	case *meta.NoKindMatchError:
		return err.GroupKind == issuing
	case interface{ Unwrap() error }:
		return lacksIssuer(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), lacksIssuer)
	}
	return false
}

// noteKinds remembers whether an extension waits for kinds, and since when there is
// nobody who issues its certificates. With the first one that waits, what the cluster
// serves begins to be followed.
func (r *Reconciler) noteKinds(extension string, outcome Outcome) {
	if !lacksKinds(outcome) {
		r.unserved.Delete(extension)
		r.issuerGone.Delete(extension)
		return
	}
	r.unserved.Store(extension, struct{}{})
	_, _ = r.Platform.APIs() // the answer comes with a signal
	if lacksIssuer(outcome.RepairErr) {
		r.issuerGone.LoadOrStore(extension, r.Now())
	} else {
		r.issuerGone.Delete(extension)
	}
}

// issuer is what is known from the passes before.
func (r *Reconciler) issuer(extension string) Issuer {
	since, gone := r.issuerGone.Load(extension)
	if since, ok := since.(time.Time); gone && ok {
		return issuerAt(since, r.Now())
	}
	return ""
}

func issuerAt(gone, now time.Time) Issuer {
	if now.Sub(gone) < issuerPatience {
		return IssuerGone
	}
	return IssuerReplaced
}
