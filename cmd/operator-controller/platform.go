package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/platform"
)

// newPlatform makes the process learn what the cluster offers, and when rights on
// it change. It tells sources of both.
func newPlatform(mgr ctrl.Manager, sources controller.Sources) (*platform.Platform, error) {
	found, err := platform.New(platform.Config{
		REST:       mgr.GetConfig(),
		HTTPClient: mgr.GetHTTPClient(),
		Changed:    sources.APIs.Send,
		Regranted:  sources.Rights.Send,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the platform: %w", err)
	}
	if err := mgr.Add(found); err != nil {
		return nil, fmt.Errorf("setting up the platform: %w", err)
	}
	return found, nil
}
