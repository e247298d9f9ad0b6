package main

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/mirrorset"
)

// newMirrors follows the mirror sets of a cluster that has some, on every replica, and gives
// what pulls read of them and of the file that the flag names.
func (p *process) newMirrors(mgr ctrl.Manager, told record.EventRecorder) (*mirrorset.Layers, error) {
	follower, err := mirrorset.NewFollower(mirrorset.Config{
		REST: mgr.GetConfig(), HTTPClient: mgr.GetHTTPClient(), Events: told, Elected: mgr.Elected(),
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(follower); err != nil {
		return nil, fmt.Errorf("setting up mirror sets: %w", err)
	}
	return mirrorset.NewLayers(filepath.Join(p.options.cachePath, "registries"), p.options.registriesConf, follower.Sets)
}
