package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	ctrl "sigs.k8s.io/controller-runtime"
)

// versionsTimeout bounds an attempt to read the versions, the first of which is
// waited for.
const versionsTimeout = 5 * time.Second

// clusterVersion is the one object that says which OpenShift this is.
const clusterVersion = "/apis/config.openshift.io/v1/clusterversions/version"

// versions are empty where they are not known.
type versions struct {
	kubernetes, openShift string
}

// learnVersions reads the versions until it has both.
func (p *Platform) learnVersions(ctx context.Context) {
	pauses := newPauses()
	for first := true; ; first = false {
		before := *p.versions.Load()
		now, err := p.readVersions(ctx, before)
		p.versions.Store(&now)
		if first {
			close(p.tried)
		} else if now != before {
			p.cfg.Changed()
		}
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "the versions of the cluster cannot be read; it will be tried again")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pauses.Step()):
		}
	}
}

// readVersions returns known with what could be read, and an error if that was
// not all.
func (p *Platform) readVersions(ctx context.Context, known versions) (versions, error) {
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
	return known, errors.Join(kubernetesErr, openShiftErr)
}

func (p *Platform) readKubernetes(ctx context.Context) (string, error) {
	body, err := p.discovery.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
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
	body, err := p.discovery.RESTClient().Get().AbsPath(clusterVersion).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
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
