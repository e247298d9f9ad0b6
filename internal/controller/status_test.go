package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func extension(channels ...string) *ocv1.ClusterExtension {
	return &ocv1.ClusterExtension{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 7},
		Spec: ocv1.ClusterExtensionSpec{Source: ocv1.SourceConfig{
			Catalog: &ocv1.CatalogFilter{PackageName: "p", Channels: channels},
		}},
	}
}

// brief is a condition in one line.
func brief(status *ocv1.ClusterExtensionStatus, kind string) string {
	condition := meta.FindStatusCondition(status.Conditions, kind)
	if condition == nil {
		return ""
	}
	return string(condition.Status) + " " + condition.Reason + ": " + condition.Message
}

func TestStatusOf(t *testing.T) {
	t.Parallel()
	const (
		noData   = "Unknown DeprecationStatusUnknown: deprecation status unknown: catalog data unavailable"
		noBundle = "Unknown Absent: no bundle installed yet"
	)
	errBoom := errors.New("boom")
	deprecations := []resolve.Deprecation{
		{Scope: resolve.PackageScope, Message: "pkg"},
		{Scope: resolve.ChannelScope, Name: "x", Message: "chan x"},
		{Scope: resolve.BundleScope, Name: "p.v1.0.0"},
		{Scope: resolve.BundleScope, Name: "p.v1.1.0", Message: "other bundle"},
	}
	tests := map[string]struct {
		channels []string
		outcome  Outcome
		want     map[string]string
		version  string
	}{
		"no ServiceAccount, fresh": {
			outcome: Outcome{Stage: StageValidate, Err: &MissingServiceAccountError{Namespace: "ns", Name: "sa"}},
			want: map[string]string{
				ocv1.TypeInstalled: `Unknown Failed: operation cannot proceed due to the following validation error(s): service account "sa" not found in namespace "ns"`,
				ocv1.TypeProgressing: `True Retrying: operation cannot proceed due to the following validation error(s): ` +
					`service account "sa" not found in namespace "ns"`,
				ocv1.TypeDeprecated: noData, ocv1.TypeBundleDeprecated: noBundle,
			},
		},
		"no ServiceAccount, installed": {
			outcome: Outcome{
				Stage: StageValidate, Err: &MissingServiceAccountError{Namespace: "ns", Name: "sa"}, Installed: installed("1.0.0"),
			},
			want: map[string]string{
				ocv1.TypeInstalled: "True Succeeded: Installed bundle registry.test/p:v1.0.0 successfully",
			},
			version: "1.0.0",
		},
		"unreadable records": {
			outcome: Outcome{Stage: StageObserve, Err: errBoom, Observed: Observed{InstallationErr: errBoom}},
			want: map[string]string{
				ocv1.TypeInstalled:        "Unknown Failed: boom",
				ocv1.TypeProgressing:      "True Retrying: retrying to get installed bundle",
				ocv1.TypeBundleDeprecated: noData,
			},
			version: "0.9.0",
		},
		"nothing found, fresh": {
			outcome: Outcome{Stage: StageResolve, Err: &resolve.Error{Kind: resolve.NoBundle, Package: "p"}},
			want: map[string]string{
				ocv1.TypeInstalled:        "False Failed: No bundle installed",
				ocv1.TypeProgressing:      `True Retrying: no bundles found for package "p"`,
				ocv1.TypeBundleDeprecated: noBundle,
			},
		},
		"nothing found, installed": {
			outcome: Outcome{
				Stage: StageResolve, Err: &resolve.Error{Kind: resolve.NoBundle, Package: "p"}, Installed: installed("1.0.0"),
			},
			want: map[string]string{
				ocv1.TypeInstalled:        "True Succeeded: Installed bundle registry.test/p:v1.0.0 successfully",
				ocv1.TypeDeprecated:       noData,
				ocv1.TypeBundleDeprecated: noData,
			},
			version: "1.0.0",
		},
		"deprecations without channels in the spec": {
			outcome: Outcome{Installed: installed("1.0.0"), Target: Target{Resolution: &resolve.Resolution{Deprecations: deprecations}}, Onward: Target{Action: Keep}},
			want: map[string]string{
				ocv1.TypeInstalled:         "True Succeeded: Installed bundle registry.test/p:v1.0.0 successfully",
				ocv1.TypeProgressing:       "True Succeeded: Desired state reached",
				ocv1.TypeDeprecated:        "True Deprecated: pkg\nchan x",
				ocv1.TypePackageDeprecated: "True Deprecated: pkg",
				ocv1.TypeChannelDeprecated: "True Deprecated: chan x",
				ocv1.TypeBundleDeprecated:  "False NotDeprecated: bundle not deprecated",
			},
			version: "1.0.0",
		},
		"deprecations of another channel": {
			channels: []string{"y"},
			outcome:  Outcome{Installed: installed("1.1.0"), Target: Target{Resolution: &resolve.Resolution{Deprecations: deprecations}}},
			want: map[string]string{
				ocv1.TypeDeprecated:        "True Deprecated: pkg\nother bundle",
				ocv1.TypeChannelDeprecated: "False NotDeprecated: channel not deprecated",
				ocv1.TypeBundleDeprecated:  "True Deprecated: other bundle",
			},
			version: "1.1.0",
		},
		"configuration refused": {
			outcome: Outcome{Stage: StageFetch, Err: &UnusableImageError{Image: "x"}, Target: Target{Bundle: identity("1.0.0")}},
			want: map[string]string{
				ocv1.TypeInstalled:   "False Failed: No bundle installed",
				ocv1.TypeProgressing: `False Blocked: error for resolved bundle "p.v1.0.0" with version "1.0.0": image reference "x" cannot be used`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := extension(tc.channels...)
			ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: "p.v0.9.0", Version: "0.9.0"}}
			ext.Status.Conditions = []metav1.Condition{{Type: "Foreign", Status: metav1.ConditionTrue, Reason: "Theirs"}}
			got := statusAt(ext, tc.outcome, time.Unix(1000, 0))

			for kind, want := range tc.want {
				if diff := cmp.Diff(want, brief(got, kind)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", kind, diff)
				}
			}
			for _, kind := range ocv1.ClusterExtensionConditionTypes() {
				condition := meta.FindStatusCondition(got.Conditions, kind)
				if condition == nil || condition.ObservedGeneration != 7 {
					t.Errorf("%s = %+v, want it present and at generation 7", kind, condition)
				}
			}
			if brief(got, "Foreign") != "True Theirs: " {
				t.Errorf("a condition of somebody else was changed: %q", brief(got, "Foreign"))
			}
			version := ""
			if got.Install != nil {
				version = got.Install.Bundle.Version
			}
			if version != tc.version {
				t.Errorf("installed version = %q, want %q", version, tc.version)
			}
		})
	}
}

// statusAt goes from an outcome to the status, as a pass does.
func statusAt(ext *ocv1.ClusterExtension, outcome Outcome, now time.Time) *ocv1.ClusterExtensionStatus {
	v := classify(outcome)
	return statusOf(ext, outcome, v, phaseOf(ext, outcome, v, efforts{}, now), now)
}

func TestStatusIsStable(t *testing.T) {
	t.Parallel()
	ext := extension()
	outcome := Outcome{Installed: installed("1.0.0"), Target: Target{Resolution: &resolve.Resolution{}}, Onward: Target{Action: Keep}}
	first := statusAt(ext, outcome, time.Unix(1000, 0))
	ext.Status = *first
	second := statusAt(ext, outcome, time.Unix(2000, 0))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("a second pass over the same world changes the status (-first +second):\n%s", diff)
	}
}
