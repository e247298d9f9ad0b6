package leadership_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterextensions/operator-controller/internal/leadership"
)

const system = "olmv1-system"

// held returns a lease that was renewed some time ago.
func held(namespace, holder string, ago time.Duration) *coordinationv1.Lease {
	seconds, renewed := int32(15), metav1.NewMicroTime(time.Now().Add(-ago))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: leadership.Lock, UID: "1", ResourceVersion: "1"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
}

// TestAbsence looks at leases of controllers that run, have ended, or may not be seen.
func TestAbsence(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		namespace, holder string // none without a namespace
		ago               time.Duration
		isRenewed         bool     // between two looks
		forbidden         []string // verbs
		want              string
		looks             int
	}{
		"F9: scaled to zero":                        {namespace: system, ago: time.Minute, looks: 2, want: `in namespace "olmv1-system" was last renewed 1m3s ago`},
		"F9: killed":                                {namespace: system, holder: "pod_1", ago: time.Hour, looks: 2, want: "kubectl -n olmv1-system get deployments,pods"},
		"F9: in another namespace":                  {namespace: "other", ago: time.Hour, looks: 2, want: `in namespace "other"`},
		"F9: without permission to list":            {namespace: system, ago: time.Minute, forbidden: []string{"list"}, looks: 4, want: "no controller is running"},
		"F9: another namespace, without permission": {namespace: "other", ago: time.Minute, forbidden: []string{"list"}, looks: 2},
		"F9: without any permission":                {namespace: system, ago: time.Hour, forbidden: []string{"list", "get"}, looks: 2},
		"F9: running":                               {namespace: system, holder: "pod_1", ago: time.Second, looks: 1},
		"F9: running, and the clock is behind":      {namespace: system, holder: "pod_1", ago: -time.Hour, looks: 1},
		"F9: running, and the clock is ahead":       {namespace: system, holder: "pod_1", ago: time.Hour, isRenewed: true, looks: 2},
		"F9: one controller succeeds another":       {namespace: system, ago: time.Second, isRenewed: true, looks: 2},
		"F9: there never was a lease":               {looks: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := fake.NewClientset()
				if tc.namespace != "" {
					if err := api.Tracker().Add(held(tc.namespace, tc.holder, tc.ago)); err != nil {
						t.Fatal(err)
					}
				}
				for _, verb := range tc.forbidden {
					api.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
						return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), leadership.Lock, nil)
					})
				}
				if tc.isRenewed {
					time.AfterFunc(time.Second, func() {
						renewed := held(tc.namespace, "pod_1", tc.ago)
						renewed.ResourceVersion = "2"
						if err := api.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), renewed, tc.namespace); err != nil {
							t.Error(err)
						}
					})
				}
				got := leadership.Watcher{API: api.CoordinationV1(), Namespace: system, Now: time.Now}.Absence(t.Context())
				if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
					t.Errorf("got %q, want %q in it", got, tc.want)
				}
				if looks := len(api.Actions()); looks != tc.looks {
					t.Errorf("%d requests, want %d", looks, tc.looks)
				}
			})
		})
	}
}

// TestAbsenceBesideLeasesOfOthers is F9: a user who may create leases in a namespace must neither hide that no controller is
// running, nor make the command report that while a controller runs.
func TestAbsenceBesideLeasesOfOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ holder, others, want string }{
		"F9: another one is held":      {others: "pod_1", want: `in namespace "olmv1-system"`},
		"F9: another one is abandoned": {holder: "pod_1"},
		"F9: both are abandoned":       {want: `in namespace "olmv1-system"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := fake.NewClientset(held(system, tc.holder, 5*time.Second), held("tenant", tc.others, time.Second))
				got := leadership.Watcher{API: api.CoordinationV1(), Namespace: system, Now: time.Now}.Absence(t.Context())
				if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
					t.Errorf("got %q, want %q in it", got, tc.want)
				}
			})
		})
	}
}
