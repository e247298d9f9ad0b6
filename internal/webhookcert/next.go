package webhookcert

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/selfissued"
)

const (
	// subject tells authorities that are ours from others.
	subject = "operator-controller webhook"
	// maxNames is how many names a certificate is issued for. A server that is
	// rendered has two; each costs time for each other one.
	maxNames = 100
	// lifetime is long because there are servers that read their certificate
	// only when they start: these have a third of it to be started again.
	lifetime = 365 * 24 * time.Hour
)

// Step is what to write now. When all of it is written, the next step is asked
// for with the objects as they are then.
type Step struct {
	// Patches may go out in any order; empty when there is nothing to do.
	Patches []Patch

	// Wait is the time until there may be something to do, if nobody changes an
	// object before; zero when there is none.
	Wait time.Duration

	// Ends is when the first certificate ends of those that servers have; zero if none has one.
	Ends time.Time
}

// Patch is a strategic merge patch of one object.
type Patch struct {
	// Object is the one of those given that is to be patched.
	Object *unstructured.Unstructured

	// Part says what of the object is written, for people.
	Part string

	// Issues says that servers get another certificate by it.
	Issues bool

	Data []byte
}

// Concerns reports whether an object of a bundle is one of those that [Next] is
// to be given.
func Concerns(object *unstructured.Unstructured) bool {
	annotations := object.GetAnnotations()
	return annotations[bundle.AnnotationCertificateNames] != "" || annotations[bundle.AnnotationInjectCAFrom] != ""
}

// Next returns what to write to the objects of one installed bundle. They are
// as they were found at the time now, and all that [Concerns] selects. The step is
// that of all certificates at once: nobody waits for two of them, and how many steps
// it takes does not depend on how many there are.
func Next(objects []*unstructured.Unstructured, now time.Time) (Step, error) {
	callers, err := callersIn(objects)
	if err != nil {
		return Step{}, err
	}
	var all Step
	for _, object := range objects {
		secret, ok, err := certifiedFrom(object)
		if err != nil {
			return Step{}, err
		}
		if !ok {
			continue
		}
		step, err := nextOf(secret, callers[secret.key()], now)
		if err != nil {
			return Step{}, err
		}
		all.Patches = append(all.Patches, step.Patches...)
		if all.Wait == 0 || step.Wait > 0 && step.Wait < all.Wait {
			all.Wait = step.Wait
		}
		if all.Ends.IsZero() || !step.Ends.IsZero() && step.Ends.Before(all.Ends) {
			all.Ends = step.Ends
		}
	}
	return all, nil
}

// nextOf is for one certificate.
func nextOf(secret certified, callers []caller, now time.Time) (Step, error) {
	found := selfissued.Read(secret.data, now)
	if found.Current == nil {
		// The Secret is new, or what it said is lost. What servers have got from
		// it before is still in use.
		found = found.Adopting(subject, trustedBy(callers), now)
	}
	decision := selfissued.Decide(found, secret.names, now)
	switch actionOf(decision, found, secret.names, callers) {
	case stage:
		made, err := selfissued.Issue(selfissued.Terms{Subject: subject, Names: decision.Names, Lifetime: lifetime}, now)
		if err != nil {
			return Step{}, fmt.Errorf("issuing a certificate for Secret %q: %w", secret.object.GetName(), err)
		}
		return writeTo(secret, found.Staged(secret.data, made))
	case inject:
		return injectInto(callers, found.Bundle())
	case publish:
		step, err := writeTo(secret, found.Promoted(secret.data))
		for i := range step.Patches {
			step.Patches[i].Issues = true
		}
		return step, err
	case rest:
	}
	// An authority that has ended is of no use to callers.
	at := Step{Wait: min(decision.Wait, found.NextEnd(now))}
	if found.Current != nil {
		at.Ends = found.Current.Leaf.NotAfter
	}
	return at, nil
}
