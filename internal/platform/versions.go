package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	ctrl "sigs.k8s.io/controller-runtime"
)

// versionsTimeout bounds an attempt to read the versions, the first of which is
// waited for.
const versionsTimeout = 5 * time.Second

// versionsAge is how old versions get before they are read again, if somebody asks for them:
// nobody tells of an upgrade of the cluster.
const versionsAge = 5 * time.Minute

// clusterVersion is the one object that says which OpenShift this is, and
// openShiftAPI the group and version of its kind.
const (
	openShiftAPI   = "/apis/config.openshift.io/v1"
	clusterVersion = openShiftAPI + "/" + clusterVersions + "/version"

	clusterVersions = "clusterversions"
)

// versions are empty where they are not known.
type versions struct {
	kubernetes, openShift string
}

// learnVersions reads the versions until it has both, and from then on again when somebody
// has asked for them and they have become old.
func (p *Platform) learnVersions(ctx context.Context) {
	for p.readBoth(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(versionsAge):
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wanted:
		}
	}
}

// readBoth reads the versions until it has both, and is false if ctx ends before.
func (p *Platform) readBoth(ctx context.Context) bool {
	pauses := newPauses()
	for {
		before := *p.versions.Load()
		now, failures := p.readVersions(ctx, before)
		p.versions.Store(&now)
		select {
		case <-p.tried:
			if now != before {
				p.cfg.Changed()
			}
		default: // nobody has been told anything yet
			close(p.tried)
		}
		if len(failures) == 0 {
			return true
		}
		if ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(errors.Join(failures...), "the versions of the cluster cannot be read; it will be tried again")
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pauses.Step()):
		}
	}
}

// readVersions returns known with what could be read, and an error for each
// version that could not.
func (p *Platform) readVersions(ctx context.Context, known versions) (versions, []error) {
	ctx, cancel := context.WithTimeout(ctx, versionsTimeout)
	defer cancel()
	kubernetes, kubernetesErr := p.readKubernetes(ctx)
	if kubernetesErr == nil {
		known.kubernetes = kubernetes
	}
	openShift, openShiftErr := p.readOpenShift(ctx)
	if openShiftErr == nil {
		known.openShift = openShift
	}
	failures := []error{kubernetesErr, openShiftErr}
	return known, slices.DeleteFunc(failures, func(err error) bool { return err == nil })
}

func (p *Platform) readKubernetes(ctx context.Context) (string, error) {
	body, err := p.get(ctx, "/version")
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	var info apiversion.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("decoding the version of Kubernetes: %w", err)
	}
	// Distributions append what would make it a pre-release: v1.36.0-eks-1 has
	// all of 1.36.0.
	parsed, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return "", fmt.Errorf("decoding the version of Kubernetes: %w", err)
	}
	return parsed.String(), nil
}

// readOpenShift returns nothing where there is no such API: that is another
// cluster.
func (p *Platform) readOpenShift(ctx context.Context) (string, error) {
	body, err := p.get(ctx, clusterVersion)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && p.isKnownNotToServe(ctx, openShiftAPI, clusterVersions) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the version of OpenShift: %w", err)
	}
	var object struct {
		Status struct {
			Desired struct {
				Version string `json:"version"`
			} `json:"desired"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return "", fmt.Errorf("decoding the version of OpenShift: %w", err)
	}
	if object.Status.Desired.Version == "" {
		return "", errors.New("the version of OpenShift is not set yet")
	}
	return object.Status.Desired.Version, nil
}

// get fails with what the API server says, of which Raw keeps no more than the reason.
func (p *Platform) get(ctx context.Context, path string) ([]byte, error) {
	result := p.discovery.RESTClient().Get().AbsPath(path).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// isKnownNotToServe asks discovery, which everybody may read, whether there is a
// resource at all. The API server refuses those who may not read an object before
// it says that there is no such resource.
func (p *Platform) isKnownNotToServe(ctx context.Context, api, resource string) bool {
	list := &metav1.APIResourceList{}
	err := p.discovery.RESTClient().Get().AbsPath(api).Do(ctx).Into(list)
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource })
}
