package controller

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "s", errors.New("no"))
}

func TestLacksRights(t *testing.T) {
	t.Parallel()
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "s")
	tests := map[string]struct {
		err  error
		want bool
	}{
		"nothing":        {},
		"another error":  {err: errors.New("boom")},
		"another answer": {err: missing},
		"forbidden":      {err: forbidden(), want: true},
		"over a quota": {err: apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "s",
			errors.New("exceeded quota: small, requested: services=1, used: services=0, limited: services=0"))},
		"a policy": {err: apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "s",
			errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"))},
		"a namespace that is being deleted": {err: apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "r",
			errors.New("unable to create new content in namespace b because it is being terminated"))},
		"a webhook":              {err: statusError(http.StatusForbidden, `admission webhook "w" denied the request: no`)},
		"told before":            {err: fmt.Errorf("a: %w", &permission.MissingError{}), want: true},
		"objects not listed":     {err: &preflight.UnsafeError{Unread: true}, want: true},
		"objects that break":     {err: &preflight.UnsafeError{}},
		"deep down":              {err: fmt.Errorf("a: %w", fmt.Errorf("b: %w", forbidden())), want: true},
		"not the first of many":  {err: errors.Join(missing, fmt.Errorf("a: %w", forbidden())), want: true},
		"many, and none of them": {err: errors.Join(missing, errors.New("boom"))},
		"many within one":        {err: fmt.Errorf("a: %w", errors.Join(missing, forbidden())), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := lacksRights(tc.err); got != tc.want {
				t.Errorf("lacksRights(%v) = %t", tc.err, got)
			}
		})
	}
}

// woken are the extensions that a change of grants wakes.
func (w *world) woken() []string {
	var names []string
	for _, request := range w.reconciler.thoseDenied() {
		names = append(names, request.Name)
	}
	slices.Sort(names)
	return names
}

func TestWhoLacksRightsIsWokenWhenTheyChange(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		installed string
		change    func(w *world)
		want      bool
	}{
		"all is granted":    {reason: "it costs no watch", change: func(*world) {}},
		"another failure":   {reason: "grants are no help", change: func(w *world) { w.applyErr = errors.New("boom") }},
		"apply is denied":   {change: func(w *world) { w.applyErr = forbidden() }, want: true},
		"denied half-way":   {change: func(w *world) { w.applyErr, w.began = forbidden(), true }, want: true},
		"repair is denied":  {installed: "1.0.0", change: func(w *world) { w.repairErr = forbidden() }, want: true},
		"so is only repair": {installed: "0.9.0", change: func(w *world) { w.fetchErr, w.repairErr = errors.New("boom"), forbidden() }, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			if tc.installed != "" {
				w.installation.Installed = installed(tc.installed)
				w.installation.Installed.Inputs = digestOf(nil)
			}
			tc.change(w)
			w.observed(t)
			_, _ = w.reconcile(t)
			if got := len(w.woken()) > 0; got != tc.want || w.watchesGrants != tc.want {
				t.Errorf("is woken: %t, grants are watched: %t, want %t: %s", got, w.watchesGrants, tc.want, tc.reason)
			}
			w.applyErr, w.fetchErr, w.repairErr = nil, nil, nil
			w.mustReconcile(t)
			if woken := w.woken(); len(woken) > 0 {
				t.Errorf("%v are woken although nothing is denied any more", woken)
			}
		})
	}
}

func TestNobodyWhoIsGoneIsWoken(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.applyErr = forbidden()
	w.observed(t)
	_, _ = w.reconcile(t)
	if len(w.woken()) != 1 {
		t.Fatal("it does not wait for rights")
	}
	ext := &ocv1.ClusterExtension{}
	ext.Name = "x"
	if err := w.client.Delete(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(t)
	if woken := w.woken(); len(woken) > 0 {
		t.Errorf("%v are woken", woken)
	}
}
