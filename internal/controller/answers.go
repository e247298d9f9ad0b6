package controller

import (
	"context"
	"sync"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// answers are what the last pass over an extension was told of the cluster: its versions,
// and whether it serves the APIs that the pass asked for. As long as they hold, the next
// pass decides as that one did.
type answers struct {
	kubernetes, openShift string

	// mu is held while an API is asked for and noted: whoever learns that others are served
	// then finds the answer among these, or it is given after that.
	mu sync.Mutex

	// served has no more APIs than the packages of the catalogs require.
	served map[requirement.API]bool

	// unknown says that it was not known what is served.
	unknown bool
}

func newAnswers(platform Platform) *answers {
	return &answers{kubernetes: platform.Kubernetes(), openShift: platform.OpenShift(), served: map[requirement.API]bool{}}
}

// asking gives whether the cluster serves an API, as of when that is asked first: what comes
// meanwhile is for the next pass. It fails as long as it is not known.
func (a *answers) asking(platform Platform) (serves func(requirement.API) bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := platform.APIs(); err != nil {
		a.unknown = true
		return nil, err
	}
	return func(api requirement.API) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		served, known := a.served[api]
		if !known {
			now, err := platform.APIs()
			served = err == nil && now(api.Group, api.Version, api.Kind)
			a.served[api] = served
		}
		return served
	}, nil
}

// stillTrue is false if any answer is another one now.
func (a *answers) stillTrue(platform Platform) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kubernetes != platform.Kubernetes() || a.openShift != platform.OpenShift() {
		return false
	}
	if len(a.served) == 0 && !a.unknown {
		return true // and nobody need follow what is served
	}
	serves, err := platform.APIs()
	if err != nil || a.unknown {
		return err != nil && a.unknown
	}
	for api, served := range a.served {
		if serves(api.Group, api.Version, api.Kind) != served {
			return false
		}
	}
	return true
}

// toldOtherwise matches the extensions that would be told something else of the cluster than
// their last pass was, those that have objects of kinds that were not served, and those whose
// chart may do otherwise now.
func (r *Reconciler) toldOtherwise(context.Context) match {
	refusedOtherwise := r.refusedOtherwise()
	return func(ext *ocv1.ClusterExtension) bool {
		if refusedOtherwise(ext) {
			return true
		}
		if _, waits := r.unserved.Load(ext.Name); waits {
			return true
		}
		if r.hasCome(ext.Name) {
			return true
		}
		known, _ := r.answers.Load(ext.Name)
		given, remembered := known.(*answers)
		return remembered && !given.stillTrue(r.Platform)
	}
}
