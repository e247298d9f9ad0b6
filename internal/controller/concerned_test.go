package controller

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestInstallMoved: an extension concerns others if something of it is installed, or was.
func TestInstallMoved(t *testing.T) {
	t.Parallel()
	with := func(version string) *ocv1.ClusterExtension {
		ext := &ocv1.ClusterExtension{}
		if version != "" {
			ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: "p", Version: version}}
		}
		return ext
	}
	moved := installMoved()
	for name, test := range map[string]struct{ got, want bool }{
		"installed":                  {moved.Update(event.UpdateEvent{ObjectOld: with(""), ObjectNew: with("1.0.0")}), true},
		"upgraded":                   {moved.Update(event.UpdateEvent{ObjectOld: with("1.0.0"), ObjectNew: with("1.1.0")}), true},
		"unchanged":                  {moved.Update(event.UpdateEvent{ObjectOld: with("1.0.0"), ObjectNew: with("1.0.0")}), false},
		"created":                    {moved.Create(event.CreateEvent{Object: with("1.0.0")}), false},
		"gone":                       {moved.Delete(event.DeleteEvent{Object: with("1.0.0")}), true},
		"gone without ever being in": {moved.Delete(event.DeleteEvent{Object: with("")}), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: moved = %t", name, test.got)
		}
	}
}
