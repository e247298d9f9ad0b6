package main

import (
	"slices"
	"testing"
)

func TestShapes(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		shape shape
		kinds []string // sorted
	}{
		"whole": {shape: whole, kinds: []string{
			"ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConfigMap", "ConfigMap",
			"CustomResourceDefinition", "Deployment", "Service", "ServiceAccount",
		}},
		"small": {shape: small, kinds: []string{
			"ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConfigMap", "ConfigMap", "Service", "ServiceAccount",
		}},
		"released": {shape: released, kinds: []string{"Deployment", "Ingress", "Service", "ServiceAccount"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, version := range []string{firstVersion, nextVersion} {
				kinds, err := kindsOf(tc.shape, version)
				if err != nil || !slices.Equal(kinds, tc.kinds) {
					t.Errorf("objects of version %s are %v, %v, want %v", version, kinds, err, tc.kinds)
				}
			}
		})
	}
}

func TestFloorWritesAllKinds(t *testing.T) {
	t.Parallel()

	written := slices.Concat(floorWaves...)
	for _, compared := range []shape{whole, small} {
		kinds, err := kindsOf(compared, firstVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			if !slices.Contains(written, kind) {
				t.Errorf("the floor writes no %s", kind)
			}
		}
	}
}

// kindsOf are those of the objects of an extension, sorted.
func kindsOf(s shape, version string) ([]string, error) {
	objects, err := s.rendered("sample", version)
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
	}
	slices.Sort(kinds)
	return kinds, err
}
