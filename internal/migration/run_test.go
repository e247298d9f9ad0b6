package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
)

// begun is an extension amid its move, which the controller has installed.
func begun(t *testing.T, name string) string {
	t.Helper()
	const group = "operators.coreos.com"
	record, err := classic.Record{
		Invocation: "once", Mode: classic.Live, Label: "operators.coreos.com/" + name + ".team",
		Subscription: classic.Ref{Reference: object.Reference{Group: group, Kind: "Subscription", Namespace: "team", Name: name}, UID: "s"},
		CSV:          classic.Ref{Reference: object.Reference{Group: group, Kind: "ClusterServiceVersion", Namespace: "team", Name: name + ".v1"}, UID: "c"},
	}.Text()
	if err != nil {
		t.Fatal(err)
	}
	ext, err := json.Marshal(map[string]any{
		"apiVersion": ocv1.GroupVersion.String(), "kind": ocv1.ClusterExtensionKind,
		"metadata": map[string]any{"name": name, "uid": "e", "annotations": map[string]any{
			classic.AnnotationRecord: record, ocv1.MigratedFromSubscriptionAnnotation: "team/" + name,
		}},
		"spec": map[string]any{"namespace": "team", "source": map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": name}}},
		"status": map[string]any{
			"install":    map[string]any{"bundle": map[string]any{"name": name + ".v1", "version": "1.0.0"}},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(ext)
}

// Somebody keeps their Subscription by a finalizer. Others are moved meanwhile, and nobody waits for that one.
func TestNoMoveWaitsForAnother(t *testing.T) {
	t.Parallel()
	done := make(chan string, 1)
	c := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch name := path.Base(r.URL.Path); {
		case strings.Contains(r.URL.Path, "/clusterextensions/"):
			if r.Method == http.MethodPatch && strings.Contains(string(body), `\"done\":true`) {
				done <- name
			}
			fmt.Fprint(w, begun(t, name))
		case name == "kept":
			fmt.Fprint(w, `{"kind":"Subscription","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"namespace":"team","name":"kept","uid":"s"},"spec":{"installPlanApproval":"Manual"}}`)
		case name == "clusterserviceversions", name == "installplans", name == "deployments":
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := quietly(t)
	run.Timeout = time.Hour
	ended := make(chan error, 1)
	go func() { ended <- c.Cleanup(ctx, []string{"kept", "other"}, run) }()
	select {
	case name := <-done:
		if name != "other" {
			t.Errorf("%s has moved", name)
		}
	case err := <-ended:
		t.Fatalf("ended with %v", err)
	}
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "interrupted: `kubectl extension migrate cleanup kept") {
		t.Errorf("err = %v", err)
	}
}

// Between the check and the first step classic OLM may carry out an InstallPlan: what is there is the successor's then, and
// nothing is taken from it.
func TestUpgradeMeanwhile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ installed, csvs string }{
		"is installed": {installed: "sample.v2"},
		"has begun":    {installed: "sample.v1", csvs: `{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"namespace":"team","name":"sample.v2"},"spec":{"replaces":"sample.v1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method != http.MethodGet {
					t.Errorf("%s %s", r.Method, r.URL.Path)
				}
				switch {
				case strings.Contains(r.URL.Path, "/clusterextensions/"):
					fmt.Fprint(w, begun(t, "sample"))
				case strings.Contains(r.URL.Path, "/subscriptions/"):
					fmt.Fprintf(w, `{"kind":"Subscription","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"namespace":"team","name":"sample","uid":"s"},
"spec":{"installPlanApproval":"Manual"},"status":{"installedCSV":%q}}`, test.installed)
				case strings.HasSuffix(r.URL.Path, "/deployments"):
					fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)
				default:
					fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[%s]}`, test.csvs)
				}
			}))
			if err := c.Cleanup(t.Context(), []string{"sample"}, quietly(t)); err == nil || !strings.Contains(err.Error(), `ClusterServiceVersion "sample.v2" meanwhile`) {
				t.Errorf("err = %v", err)
			}
		})
	}
}
