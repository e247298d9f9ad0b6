package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/platform"
)

// newPlatform makes the process learn what the cluster offers. It calls changed
// when that has changed.
func newPlatform(mgr ctrl.Manager, changed func()) (*platform.Platform, error) {
	found, err := platform.New(platform.Config{
		REST:       mgr.GetConfig(),
		HTTPClient: mgr.GetHTTPClient(),
		Changed:    changed,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the platform: %w", err)
	}
	if err := mgr.Add(found); err != nil {
		return nil, fmt.Errorf("setting up the platform: %w", err)
	}
	return found, nil
}
